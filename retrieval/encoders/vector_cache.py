"""Caches of vectors: of queries, and of sentences of passages."""

import hashlib
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final

import numpy as np
from numpy.typing import NDArray

from retrieval.encoders.model_calls import ModelCalls, model_key
from retrieval.encoders.protocol import Encoder
from retrieval.engine.caches import RecentCache
from retrieval.engine.types import Vector

#: Time limit for encoding sentences: twelve take a tenth of a second, and longer on a busy machine.
_SENTENCE_SECONDS: Final = 5.0


class VectorCache(RecentCache[Vector]):
    """The vectors used last, read-only; 1.5 KB each with the default model."""

    __slots__ = ()

    def _keep(self, key: Hashable, value: Vector) -> Vector:
        copy = value.copy()
        copy.flags.writeable = False
        return super()._keep(key, copy)


def _text_key(encoder: Encoder, text: str) -> tuple[str, str, bytes]:
    """Return the cache key of a text's vector by a model, with a hash instead of the text."""
    return encoder.name, encoder.weights, hashlib.sha256(text.encode()).digest()


@dataclass(frozen=True, slots=True)
class CachedVector:
    """A query's read-only unit vector, and whether it came from the cache."""

    vector: Vector
    was_cached: bool


@dataclass(frozen=True, slots=True)
class QueryCache:
    """The vectors of the latest queries; thread-safe.

    Each principal has separate entries, so that the response time does not reveal the queries of others. Texts are
    stored as hashes.
    """

    cache: VectorCache

    def encode(self, text: str, *, encoder: Encoder, principal: str) -> CachedVector:
        """Return a query's vector, from the principal's entries or by the encoder; raise EncoderError."""
        cached = self.get(text, encoder=encoder, principal=principal)
        if cached is not None:
            return cached
        key = (principal, *_text_key(encoder, text))
        return CachedVector(self.cache.put(key, encoder.encode_query(text)), was_cached=False)

    def get(self, text: str, *, encoder: Encoder, principal: str) -> CachedVector | None:
        """Return a query's vector from the principal's entries; None if it is not cached."""
        vector = self.cache.get((principal, *_text_key(encoder, text)))
        return None if vector is None else CachedVector(vector, was_cached=True)


@dataclass(frozen=True, slots=True)
class SentenceEncoder:
    """Encodes sentences with a cache that all users share; calls of the model have a time limit.

    Users with access to a passage can tell from the response time that it was used for an answer, but not the query.
    """

    encoder: Encoder
    cache: VectorCache | None = None
    calls: ModelCalls = field(default_factory=ModelCalls)

    def encode_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return unit vectors, shape (len(texts), dim), in input order; raise EncoderError."""
        work = partial(self._encoded, texts)
        return self.calls.within(_SENTENCE_SECONDS, work, model=model_key(self.encoder))

    def _encoded(self, texts: Sequence[str]) -> NDArray[np.float32]:
        if self.cache is None:
            return self.encoder.encode_documents(texts)
        keys = [_text_key(self.encoder, text) for text in texts]
        vectors = {key: vector for key in keys if (vector := self.cache.get(key)) is not None}
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in vectors}
        if missing:
            fresh = self.encoder.encode_documents(list(missing.values()))
            vectors |= {key: self.cache.put(key, vector) for key, vector in zip(missing, fresh, strict=True)}
        return np.array([vectors[key] for key in keys], np.float32).reshape(len(texts), self.encoder.dim)
