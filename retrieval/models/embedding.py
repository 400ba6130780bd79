"""Embeddings, and the indexes that hold one set of them per model."""

from typing import ClassVar

from django.db import models
from django.db.models import Q
from pgvector.django import HalfVectorField


class EmbeddingIndex(models.Model):
    """One model's embeddings of every chunk. A new model gets a new index beside the old, then takes over.

    All of them are written by every sync, so that each is complete at any time once it was built.
    """

    class Status(models.TextChoices):
        """ACTIVE is searched, only one is; BUILDING is to take over; PREVIOUS was searched before, to go back to."""

        BUILDING = "building"
        ACTIVE = "active"
        PREVIOUS = "previous"

    class Mode(models.TextChoices):
        """What a chunk's vector is made of: the chunk by itself, or its tokens in a reading of the whole document."""

        CHUNK_FIRST = "chunk_first"
        LATE = "late"

    class Scan(models.TextChoices):
        """What its HNSW index is walked by; all but HALFVEC compare what was found by the whole vectors afterwards."""

        HALFVEC = "halfvec"
        #: A byte a component: eight thresholds, a bit each.
        INT8 = "int8"
        #: The sign of each component.
        BINARY = "binary"
        #: The first components, of a model that was trained so (Matryoshka).
        PREFIX = "prefix"

    model = models.CharField(max_length=120)
    #: Tells the weights apart from others under the same name.
    weights = models.CharField(max_length=200)
    dim = models.PositiveIntegerField()
    #: Where the model is: "local:" and its folder, or the kind of a service.
    source = models.CharField(max_length=200, default="", blank=True)
    mode = models.CharField(max_length=12, choices=Mode.choices, default=Mode.CHUNK_FIRST)
    scan = models.CharField(max_length=8, choices=Scan.choices, default=Scan.HALFVEC, db_default=Scan.HALFVEC)
    #: Components that PREFIX is walked by; 0 for the others.
    scan_dim = models.PositiveIntegerField(default=0, db_default=0)
    #: Chunks that the walk finds for each one that is wanted, before the whole vectors choose; at least 1.
    oversample = models.FloatField(default=1.0, db_default=1.0)
    status = models.CharField(max_length=10, choices=Status.choices, default=Status.BUILDING)
    created_at = models.DateTimeField(auto_now_add=True)
    #: When it last had a vector for every chunk; None while some are known to be missing.
    ready_at = models.DateTimeField(null=True, blank=True)
    #: When it last became the one that is searched, or ceased to be.
    switched_at = models.DateTimeField(null=True, blank=True)
    #: Chunks that its building has embedded so far, the seconds that this took, and its last sign of life.
    built = models.BigIntegerField(default=0)
    build_seconds = models.FloatField(default=0.0)
    heartbeat_at = models.DateTimeField(null=True, blank=True)
    #: What stopped the building; empty while nothing has.
    problem = models.TextField(default="", blank=True)

    class Meta:
        verbose_name_plural = "embedding indexes"
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["status"], condition=Q(status="active"), name="one_active_embedding_index"),
            models.UniqueConstraint(
                fields=["status"], condition=Q(status="building"), name="one_building_embedding_index"
            ),
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
