"""The embedding index that is searched and written: one per model, made on first use."""

from django.db import transaction

from corecube.errors import ConfigError
from retrieval.encoders import Encoder
from retrieval.index.store import VectorIndex
from retrieval.index.writer import create_vector_index
from retrieval.models import EmbeddingIndex


def ensure_index(encoder: Encoder) -> VectorIndex:
    """Return the active embedding index, made for this model when there is none.

    Raises ConfigError when the active index was built with another model: its vectors cannot be compared.
    """
    with transaction.atomic():
        row, created = EmbeddingIndex.objects.get_or_create(
            status=EmbeddingIndex.Status.ACTIVE,
            defaults={"model": encoder.name, "weights": encoder.weights, "dim": encoder.dim},
        )
        index = VectorIndex(row.pk, row.dim)
        if created:
            create_vector_index(index)
    if (row.model, row.weights, row.dim) != (encoder.name, encoder.weights, encoder.dim):
        message = (
            f"The embedding index was built with {row.model} ({row.weights});"
            f" CORECUBE_MODEL is {encoder.name} ({encoder.weights})."
        )
        raise ConfigError(message)
    return index
