"""The installation's reranker, as its settings name it."""

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Final

from django.conf import settings

from retrieval.encoders import Encoder, OnnxEncoder
from retrieval.encoders.cross_encoder import CrossEncoder, load_cross_encoder
from retrieval.encoders.encodings import token_encoder
from retrieval.encoders.late_interaction import LateInteraction
from retrieval.encoders.remote_reranker import RemoteReranker, RerankService
from retrieval.encoders.reranker import Reranker, UnavailableReranker
from retrieval.engine.types import ScoreType
from retrieval.errors import EncoderError, ModelMissingError
from retrieval.index.stored_interaction import StoredInteraction

_LATE_INTERACTION: Final = "late-interaction"
_STORED_INTERACTION: Final = "stored-late-interaction"
_SERVICE: Final = "http"


def configured_reranker(encoder: Callable[[], Encoder]) -> Reranker | None:
    """Return the reranker, loaded on first use; None where none is configured.

    One that cannot be had is returned all the same: it tells each search why. `encoder` gives the installation's
    embedding model. Raises ConfigError for a service that lacks what its kind needs, and what `encoder` raises.
    """
    match settings.CORECUBE_RERANKER:
        case "":
            return None
        case _ if service := configured_service():
            return _remote(service)
        case name if name == _LATE_INTERACTION:
            return _late_interaction(encoder())
        case name if name == _STORED_INTERACTION:
            return _stored_interaction()
        case name:
            return _local(name)


def configured_service() -> RerankService | None:
    """Return the configured reranking service, None without one; raise ConfigError."""
    if settings.CORECUBE_RERANKER != _SERVICE:
        return None
    return RerankService(
        kind=settings.CORECUBE_RERANKER_KIND,
        url=settings.CORECUBE_RERANKER_URL,
        model=settings.CORECUBE_RERANKER_MODEL,
        api_key=settings.CORECUBE_RERANKER_API_KEY,
    )


def model_directory() -> Path | None:
    """Return where the configured model of this machine has to be, None where another kind is configured."""
    name = settings.CORECUBE_RERANKER
    is_folder = name not in {"", _SERVICE, _LATE_INTERACTION, _STORED_INTERACTION}
    return settings.CORECUBE_MODELS_DIR / name if is_folder else None


def _local(name: str) -> Reranker:
    try:
        return _loaded(settings.CORECUBE_MODELS_DIR / name)
    except ModelMissingError:
        return UnavailableReranker(name, f"The reranking model {name!r} is not on this machine.")
    except EncoderError:
        return UnavailableReranker(name, f"The reranking model {name!r} cannot be loaded.")


def _late_interaction(encoder: Encoder) -> Reranker:
    if isinstance(encoder, OnnxEncoder):
        return LateInteraction(encoder)
    problem = f"The embedding model {encoder.name!r} gives no vectors of single tokens."
    return UnavailableReranker(_LATE_INTERACTION, problem, ScoreType.MAXSIM)


def _stored_interaction() -> Reranker:
    """Return late interaction with stored token vectors; one that says so where no model is chosen or to be had."""
    try:
        encoder = token_encoder()
    except EncoderError:
        problem = f"The model {settings.CORECUBE_TOKEN_MODEL!r} of the token vectors cannot be loaded."
        return UnavailableReranker(_STORED_INTERACTION, problem, ScoreType.MAXSIM)
    if encoder is None:
        problem = "CORECUBE_TOKEN_MODEL is not set: there are no stored token vectors."
        return UnavailableReranker(_STORED_INTERACTION, problem, ScoreType.MAXSIM)
    return StoredInteraction(encoder)


@cache
def _loaded(directory: Path) -> CrossEncoder:
    return load_cross_encoder(directory)


@cache
def _remote(service: RerankService) -> RemoteReranker:
    return RemoteReranker(service)
