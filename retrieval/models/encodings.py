"""What optional models make of chunks: sparse vectors, and the vectors of their tokens."""

from typing import ClassVar

from django.db import models
from pgvector.django import SparseVectorField


class SparseEmbedding(models.Model):
    """The weights of words for a chunk, by the installation's sparse model.

    The HNSW index over it is partial, one a model.
    """

    pk = models.CompositePrimaryKey("document_id", "ordinal")
    document_id = models.UUIDField()
    ordinal = models.IntegerField()
    connection_id = models.BigIntegerField()
    #: Tells the model and its weights apart (`retrieval.encoders.encodings.key_of`).
    model_key = models.BigIntegerField()
    vector = SparseVectorField()

    class Meta:
        indexes: ClassVar = [models.Index(fields=["connection_id", "model_key"], name="sparse_by_connection")]

    def __str__(self) -> str:
        return f"{self.document_id}:{self.ordinal}"


class TokenEmbedding(models.Model):
    """The quantised vectors of a chunk's tokens, by the installation's late-interaction model."""

    pk = models.CompositePrimaryKey("document_id", "ordinal")
    document_id = models.UUIDField()
    ordinal = models.IntegerField()
    connection_id = models.BigIntegerField()
    model_key = models.BigIntegerField()
    #: As `retrieval.encoders.token_vectors.TokenVectors.to_bytes` writes them.
    steps = models.BinaryField()
    scales = models.BinaryField()

    class Meta:
        indexes: ClassVar = [models.Index(fields=["connection_id", "model_key"], name="tokens_by_connection")]

    def __str__(self) -> str:
        return f"{self.document_id}:{self.ordinal}"
