"""The embedding models that the settings offer."""

from django.conf import settings

from retrieval.encoders.choice import Choice, Choices
from retrieval.models import EmbeddingIndex


def choices() -> Choices:
    """Return what the installation's settings offer."""
    return Choices(
        models_dir=settings.CORECUBE_MODELS_DIR,
        model=settings.CORECUBE_MODEL,
        dim=settings.CORECUBE_MODEL_DIMENSIONS,
        service=settings.CORECUBE_EMBEDDER,
        next_service=settings.CORECUBE_NEXT_EMBEDDER,
        calls=settings.CORECUBE_EMBED_CONCURRENCY,
    )


def of_index(row: EmbeddingIndex) -> Choice:
    """Return the model that made an index's vectors; raise ConfigError, ModelMissingError or EncoderError."""
    return choices().of_index(source=row.source, model=row.model, dim=row.dim)
