"""Embeddings and embedding indexes, and the vectors of optional models: sparse vectors and token vectors."""

from typing import ClassVar

from django.db import models
from django.db.models import Q
from pgvector.django import HalfVectorField, SparseVectorField


class EmbeddingIndex(models.Model):
    """One model's embeddings of all chunks. A new model gets an additional index, which then replaces the old one.

    Every sync writes to all of them, so that each stays complete after it was built.
    """

    class Status(models.TextChoices):
        """ACTIVE (only one) is in use; BUILDING is not complete; PREVIOUS is available for a rollback."""

        BUILDING = "building"
        ACTIVE = "active"
        PREVIOUS = "previous"

    class Mode(models.TextChoices):
        """The input of a chunk's vector: only the chunk, or its tokens in the context of the document."""

        CHUNK_FIRST = "chunk_first"
        LATE = "late"

    class Scan(models.TextChoices):
        """The vectors of the HNSW index; all but HALFVEC rescore the candidates with the full vectors."""

        HALFVEC = "halfvec"
        INT8 = "int8"  #: A byte per dimension: eight thresholds, one bit each.
        BINARY = "binary"  #: The sign of each dimension.
        PREFIX = "prefix"  #: The first dimensions of a nested (Matryoshka) model.

    model = models.CharField(max_length=120)
    weights = models.CharField(max_length=200)  #: Identifies the weights, as models can share a name.
    dim = models.PositiveIntegerField()
    #: "local:" and the model's folder, or the kind of a service.
    source = models.CharField(max_length=200, default="", blank=True)
    mode = models.CharField(max_length=12, choices=Mode.choices, default=Mode.CHUNK_FIRST)
    scan = models.CharField(max_length=8, choices=Scan.choices, default=Scan.HALFVEC, db_default=Scan.HALFVEC)
    scan_dim = models.PositiveIntegerField(default=0, db_default=0)  #: Dimensions of PREFIX; 0 for the others.
    #: Candidates per requested hit, rescored with the full vectors; at least 1.
    oversample = models.FloatField(default=1.0, db_default=1.0)
    #: Whether the vector of a chunk longer than the model's input is pooled from windows. Earlier versions cut such
    #: chunks; the next build of their index embeds them again.
    pools_windows = models.BooleanField(default=True, db_default=False)
    status = models.CharField(max_length=10, choices=Status.choices, default=Status.BUILDING)
    created_at = models.DateTimeField(auto_now_add=True)
    #: When it last had a vector for every chunk; None if some are missing.
    ready_at = models.DateTimeField(null=True, blank=True)
    switched_at = models.DateTimeField(null=True, blank=True)  #: When searches last switched to it or away from it.
    #: Chunks that its build has embedded so far, the seconds for them, and the last heartbeat.
    built = models.BigIntegerField(default=0)
    build_seconds = models.FloatField(default=0.0)
    heartbeat_at = models.DateTimeField(null=True, blank=True)
    problem = models.TextField(default="", blank=True)  #: What stopped the build; empty for nothing.

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


class ChunkRow(models.Model):
    """A row about a chunk."""

    document_id = models.UUIDField()
    ordinal = models.IntegerField()
    connection_id = models.BigIntegerField()

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return f"{self.document_id}:{self.ordinal}"


class Embedding(ChunkRow):
    """A chunk's unit vector in one index. The HNSW index over it is partial, one per embedding index."""

    pk = models.CompositePrimaryKey("document_id", "ordinal", "index_id")
    index_id = models.BigIntegerField()
    vector = HalfVectorField()

    class Meta:
        indexes: ClassVar = [models.Index(fields=["index_id", "connection_id"], name="embedding_by_connection")]


class SparseEmbedding(ChunkRow):
    """A chunk's sparse vector (weights of words). The HNSW index over it is partial, one per model."""

    pk = models.CompositePrimaryKey("document_id", "ordinal")
    #: Identifies the model and its weights (`retrieval.encoders.embedders.key_of`).
    model_key = models.BigIntegerField()
    vector = SparseVectorField()

    class Meta:
        indexes: ClassVar = [models.Index(fields=["connection_id", "model_key"], name="sparse_by_connection")]


class TokenEmbedding(ChunkRow):
    """The compressed vectors of a chunk's tokens, for late interaction."""

    pk = models.CompositePrimaryKey("document_id", "ordinal")
    model_key = models.BigIntegerField()
    vectors = models.BinaryField()  #: As `CompressedVectors.to_bytes` writes them.

    class Meta:
        indexes: ClassVar = [models.Index(fields=["connection_id", "model_key"], name="tokens_by_connection")]


class SentenceEmbedding(ChunkRow):
    """The compressed vectors of what can be quoted of a chunk: its sentences, list items, rows and short lists."""

    pk = models.CompositePrimaryKey("document_id", "ordinal")
    model_key = models.BigIntegerField()
    #: In the order of `retrieval.ranking.quotes.candidates.runs`, written like a chunk's token vectors.
    vectors = models.BinaryField()

    class Meta:
        indexes: ClassVar = [models.Index(fields=["connection_id", "model_key"], name="sentences_by_connection")]
