"""The benchmark's queries: words of a random chunk, sometimes with its document's name, and a similar vector."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from corecube.access import ScopeRequest
from retrieval.encoders.embedders import choices
from retrieval.encoders.protocol import Batching, Encoder
from retrieval.engine.types import Vector
from retrieval.errors import ModelMissingError
from retrieval.evaluation.bench.corpus import MODEL, document_key, slug
from retrieval.evaluation.bench.plan import Plan, chunks_in, connections_in
from retrieval.evaluation.bench.synthesis import CHUNKS_PER_DOCUMENT, DIM, mixing, noise, plain_words, unit
from retrieval.models import Chunk, Embedding
from retrieval.search.request import SearchRequest

_QUERY_WORDS: Final = (2, 6)
_NAMED_SHARE: Final = 0.5
#: Words in the model's vocabulary: each is one token.
_ENGLISH: Final = (
    *("server", "backup", "which", "password", "network", "access", "during", "main", "page", "year", "plan"),
)


@dataclass(frozen=True, slots=True)
class SyntheticQuery:
    """A query and the vector used as its embedding."""

    text: str
    vector: Vector


@dataclass(frozen=True, slots=True)
class KnownQueries:
    """An encoder with known vectors of the queries, which can also run a real model to measure its time.

    The model reads English words in place of the synthetic ones, which would need a token per letter; its vectors are
    discarded.
    """

    vectors: Mapping[str, Vector]
    model: Encoder | None = None  #: The model to run; None to leave out its time.
    name: str = MODEL
    weights: str = MODEL
    dim: int = DIM
    max_tokens: int = 512
    tokenizer_file: str = ""
    min_dim: int = 32  #: Nested vectors allow a prefix scan.
    batching: Batching = field(default_factory=Batching)

    def encode_query(self, text: str) -> Vector:
        """Return the query's unit vector, shape (dim,); a random one for other texts."""
        if self.model:
            self.model.encode_query(_readable(text))
        return self.vectors[text] if text in self.vectors else _random_vector(text)

    def encode_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return random unit vectors, equal for equal texts, shape (len(texts), dim)."""
        if self.model:
            self.model.encode_documents([_readable(text) for text in texts])
        return np.stack([_random_vector(text) for text in texts])

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Return the number of words of each text."""
        return [len(text.split()) for text in texts]

    def token_spans(self, text: str) -> list[tuple[int, int]]:
        """Return one span over the entire text."""
        return [(0, len(text))]


def _readable(text: str) -> str:
    return " ".join(_ENGLISH[crc32(word.encode()) % len(_ENGLISH)] for word in text.split())


def _random_vector(text: str) -> Vector:
    return unit(noise(np.random.default_rng(list(text.encode())), 1)[0])


def installed_model() -> Encoder | None:
    """Return the configured embedding model; None for a service or if it is not on this machine."""
    choice = choices().configured()
    try:
        return None if choice.service else choice.load()
    except ModelMissingError:
        return None


def request_for(query: SyntheticQuery, plan: Plan, percent: int) -> SearchRequest:
    """Return the search for a query in a scope."""
    narrowing = ScopeRequest(include=tuple(slug(number) for number in connections_in(percent)))
    return SearchRequest(text=query.text, preset=plan.preset, narrowing=narrowing)


def first_query(plan: Plan, percent: int) -> SyntheticQuery:
    """Return a query that differs from the sampled ones."""
    return _about_a_chunk(np.random.default_rng([plan.seed, percent, 1]), connections_in(percent)[-1], plan)


def sample_queries(plan: Plan, percent: int, count: int) -> list[SyntheticQuery]:
    """Return queries about random chunks of a scope; the same for the same plan and scope."""
    rng = np.random.default_rng([plan.seed, percent])
    connections = connections_in(percent)
    return [_about_a_chunk(rng, int(rng.choice(connections)), plan) for _ in range(count)]


def _about_a_chunk(rng: np.random.Generator, connection: int, plan: Plan) -> SyntheticQuery:
    """Return a query of a few different words of one chunk, with a vector at a cosine of about 0.7 to the chunk's."""
    place, ordinal = divmod(int(rng.integers(chunks_in(connection, plan.chunks))), CHUNKS_PER_DOCUMENT)
    document = document_key(connection, place)
    chunks = Chunk.objects.select_related("document").only("text", "document__title")
    chunk = chunks.get(document_id=document, ordinal=ordinal)
    embedding = Embedding.objects.get(document_id=document, ordinal=ordinal)
    plain = sorted(set(plain_words(chunk.text)))
    words = rng.permutation(plain)[: rng.integers(*_QUERY_WORDS, endpoint=True)]
    name = [chunk.document.title] if rng.random() < _NAMED_SHARE else []
    apart = noise(rng, 1)[0] if plan.nested else noise(rng, 1)[0] @ mixing()
    vector = unit(embedding.vector.to_numpy().astype(np.float32) + apart)
    return SyntheticQuery(" ".join((*words, *name)), vector)
