"""System checks of the engine's models."""

from typing import Any

from django.core.checks import CheckMessage, Warning, register  # noqa: A004 -- Django's name

from retrieval.encoders.manifest import CrossEncoderManifest, read_manifest
from retrieval.errors import EncoderError
from retrieval.index.reranking import model_directory


@register("corecube")
def check_reranker(**_: Any) -> list[CheckMessage]:  # noqa: ANN401 -- Django's signature
    """Warn about a configured reranking model that is missing; searches work without it."""
    directory = model_directory()
    if directory is None:
        return []
    try:
        read_manifest(directory, CrossEncoderManifest)
    except EncoderError as error:
        return [Warning(f"Searches are not reranked: {error}", id="retrieval.W001")]
    return []
