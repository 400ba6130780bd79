"""Vectors of texts that were encoded lately, kept in memory."""

import hashlib
from collections import OrderedDict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from retrieval.encoders.protocol import Encoder
from retrieval.engine.types import Vector


@dataclass(frozen=True, slots=True)
class KeptVectors:
    """The vectors used latest, at most `entries` of them; safe to use from several threads."""

    #: 1.5 KB each with the default model.
    entries: int
    _vectors: OrderedDict[Hashable, Vector] = field(default_factory=OrderedDict, init=False, repr=False, compare=False)
    _lock: Lock = field(default_factory=Lock, init=False, repr=False, compare=False)

    def get(self, key: Hashable) -> Vector | None:
        """Return what is kept under a key, not to be written to; None where nothing is."""
        with self._lock:
            vector = self._vectors.get(key)
            if vector is not None:
                self._vectors.move_to_end(key)
            return vector

    def keep(self, key: Hashable, vector: Vector) -> Vector:
        """Keep a copy of a vector under a key, and return it."""
        kept = vector.copy()
        kept.flags.writeable = False
        with self._lock:
            self._vectors[key] = kept
            while len(self._vectors) > self.entries:
                self._vectors.popitem(last=False)
        return kept

    def __len__(self) -> int:
        return len(self._vectors)


def text_key(encoder: Encoder, text: str) -> tuple[str, str, bytes]:
    """Return what names a text's vector by a model, without the text itself."""
    return encoder.name, encoder.weights, hashlib.sha256(text.encode()).digest()


@dataclass(frozen=True, slots=True)
class SentenceEncoder:
    """Encodes sentences of passages, which come up again with every question that finds them.

    Whoever may see a passage can tell by the speed at most that somebody was answered from it, never what was asked.
    """

    encoder: Encoder
    #: None keeps nothing.
    kept: KeptVectors | None = None

    def encode_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return unit vectors, shape (len(texts), dim), in input order; raise EncoderError if the model fails."""
        if self.kept is None:
            return self.encoder.encode_documents(texts)
        keys = [text_key(self.encoder, text) for text in texts]
        vectors = {key: vector for key in keys if (vector := self.kept.get(key)) is not None}
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in vectors}
        if missing:
            fresh = self.encoder.encode_documents(list(missing.values()))
            vectors |= {key: self.kept.keep(key, vector) for key, vector in zip(missing, fresh, strict=True)}
        return np.array([vectors[key] for key in keys], np.float32).reshape(len(texts), self.encoder.dim)

    def encode_query(self, text: str) -> Vector:
        """Return the unit vector of a question, shape (dim,); raise EncoderError if the model fails."""
        return self.encoder.encode_query(text)

    def holds(self, texts: Sequence[str]) -> bool:
        """Return whether the vectors of all these texts are kept."""
        return self.kept is not None and all(self.kept.get(text_key(self.encoder, text)) is not None for text in texts)
