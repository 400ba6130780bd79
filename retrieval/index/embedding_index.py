"""The embedding index that is searched and written: one per model, made on first use."""

from django.db import transaction

from corecube.errors import ConfigError
from retrieval.encoders import Encoder
from retrieval.index.store import VectorIndex
from retrieval.index.writer import create_vector_index
from retrieval.models import EmbeddingIndex


def ensure_index(encoder: Encoder) -> VectorIndex:
    """Return the active embedding index, made for this model when there is none.

    Raises ConfigError when the active index holds another model's vectors.
    """
    with transaction.atomic():
        row, created = EmbeddingIndex.objects.get_or_create(
            status=EmbeddingIndex.Status.ACTIVE,
            defaults={"model": encoder.name, "weights": encoder.weights, "dim": encoder.dim},
        )
        index = same_model(row, encoder)
        if created:
            create_vector_index(index)
    return index


def same_model(row: EmbeddingIndex, encoder: Encoder) -> VectorIndex:
    """Return the index for searching and writing; raise ConfigError unless this model made its vectors."""
    if (row.model, row.weights, row.dim) != (encoder.name, encoder.weights, encoder.dim):
        message = (
            f"The embedding index was built with {row.model} ({row.weights});"
            f" CORECUBE_MODEL is {encoder.name} ({encoder.weights})."
        )
        raise ConfigError(message)
    return VectorIndex(row.pk, row.dim)
