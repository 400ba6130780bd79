"""The bench's queries: words of a random chunk in scope, and a vector near that chunk's."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from retrieval.encoders.protocol import Batching
from retrieval.evaluate.bench.corpus import MODEL, document_key
from retrieval.evaluate.bench.plan import Plan, chunks_in, connections_in
from retrieval.evaluate.bench.synthesis import CHUNKS_PER_DOCUMENT, DIM, noise, unit
from retrieval.models import Chunk, Embedding
from retrieval.types import Vector

_QUERY_WORDS: Final = (2, 6)


@dataclass(frozen=True, slots=True)
class SyntheticQuery:
    """A query, and the vector that stands for its embedding."""

    text: str
    vector: Vector


@dataclass(frozen=True, slots=True)
class KnownQueries:
    """An encoder that embeds nothing: it knows the vectors of the queries that will be asked."""

    vectors: Mapping[str, Vector]
    name: str = MODEL
    weights: str = MODEL
    dim: int = DIM
    max_tokens: int = 512
    batching: Batching = field(default_factory=Batching)

    def encode_query(self, text: str) -> Vector:
        """Return the query's unit vector, shape (dim,); raise KeyError for a text that is none of the queries."""
        return self.vectors[text]

    def encode_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return made-up unit vectors, the same for the same text, shape (len(texts), dim)."""
        return unit(np.concatenate([noise(np.random.default_rng(list(text.encode())), 1) for text in texts]))

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Return the number of words of each text."""
        return [len(text.split()) for text in texts]

    def token_spans(self, text: str) -> list[tuple[int, int]]:
        """Return one span over the whole text."""
        return [(0, len(text))]


def sample_queries(plan: Plan, percent: int, count: int) -> list[SyntheticQuery]:
    """Return queries about random chunks of a scope; the same plan and scope give the same."""
    rng = np.random.default_rng([plan.seed, percent])
    connections = connections_in(percent)
    return [_about_a_chunk(rng, int(rng.choice(connections)), plan.chunks) for _ in range(count)]


def _about_a_chunk(rng: np.random.Generator, connection: int, chunks: int) -> SyntheticQuery:
    """Return a query of a few different words of one chunk, with a vector at a cosine of about 0.7 to the chunk's."""
    place, ordinal = divmod(int(rng.integers(chunks_in(connection, chunks))), CHUNKS_PER_DOCUMENT)
    document = document_key(connection, place)
    text = Chunk.objects.values_list("text", flat=True).get(document_id=document, ordinal=ordinal)
    embedding = Embedding.objects.get(document_id=document, ordinal=ordinal)
    words = rng.permutation(sorted(set(text.split())))[: rng.integers(*_QUERY_WORDS, endpoint=True)]
    vector = unit(embedding.vector.to_numpy().astype(np.float32) + noise(rng, 1)[0])
    return SyntheticQuery(" ".join(words), vector)
