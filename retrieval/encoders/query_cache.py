"""Vectors of queries that were asked before, kept in memory."""

import hashlib
from collections import OrderedDict
from dataclasses import dataclass, field
from threading import Lock

from retrieval.encoders.protocol import Encoder
from retrieval.types import Vector

_Key = tuple[str, str, str, bytes]


@dataclass(frozen=True, slots=True)
class CachedVector:
    """A query's unit vector, not to be written to, and whether it was known."""

    vector: Vector
    was_known: bool


@dataclass(frozen=True, slots=True)
class QueryCache:
    """The vectors of the latest queries, at most `entries` of them; safe to use from several threads.

    Each principal has entries of its own, so that no one can tell from an answer's speed what someone else asked.
    Texts are kept as hashes.
    """

    #: 1.5 KB each with the default model.
    entries: int
    _vectors: OrderedDict[_Key, Vector] = field(default_factory=OrderedDict, init=False, repr=False, compare=False)
    _lock: Lock = field(default_factory=Lock, init=False, repr=False, compare=False)

    def encode(self, text: str, *, encoder: Encoder, principal: str) -> CachedVector:
        """Return the encoder's vector of a query, kept from the last time this principal asked it or new.

        Raises EncoderError if the model fails.
        """
        key = (principal, encoder.name, encoder.weights, hashlib.sha256(text.encode()).digest())
        with self._lock:
            known = self._vectors.get(key)
            if known is not None:
                self._vectors.move_to_end(key)
                return CachedVector(known, was_known=True)
        # Not under the lock: while one thread encodes, others may find what they look for.
        vector = encoder.encode_query(text).copy()
        vector.flags.writeable = False
        with self._lock:
            self._vectors[key] = vector
            while len(self._vectors) > self.entries:
                self._vectors.popitem(last=False)
        return CachedVector(vector, was_known=False)

    def __len__(self) -> int:
        return len(self._vectors)
