"""Embeddings, and the indexes that hold one set of them per model."""

from typing import ClassVar

from django.db import models
from django.db.models import Q
from pgvector.django import HalfVectorField


class EmbeddingIndex(models.Model):
    """One model's embeddings of every chunk. A new model gets a new index beside the old, then takes over."""

    class Status(models.TextChoices):
        """BUILDING is written but not searched, ACTIVE is searched; only one index is active."""

        BUILDING = "building"
        ACTIVE = "active"

    model = models.CharField(max_length=120)
    #: Tells the weights apart from others under the same name.
    weights = models.CharField(max_length=200)
    dim = models.PositiveIntegerField()
    status = models.CharField(max_length=10, choices=Status.choices, default=Status.BUILDING)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        verbose_name_plural = "embedding indexes"
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["status"], condition=Q(status="active"), name="one_active_embedding_index")
        ]

    def __str__(self) -> str:
        return f"{self.model} ({self.dim}, {self.status})"


class Embedding(models.Model):
    """A chunk's unit vector in one index. The HNSW index over it is partial, one per embedding index."""

    pk = models.CompositePrimaryKey("document_id", "ordinal", "index_id")
    document_id = models.UUIDField()
    ordinal = models.IntegerField()
    index_id = models.BigIntegerField()
    connection_id = models.BigIntegerField()
    vector = HalfVectorField()

    class Meta:
        indexes: ClassVar = [models.Index(fields=["index_id", "connection_id"], name="embedding_by_connection")]

    def __str__(self) -> str:
        return f"{self.document_id}:{self.ordinal}"
