"""Vectors of queries that were asked before, kept in memory."""

from dataclasses import dataclass

from retrieval.encoders.kept_vectors import KeptVectors, text_key
from retrieval.encoders.protocol import Encoder
from retrieval.engine.types import Vector


@dataclass(frozen=True, slots=True)
class CachedVector:
    """A query's unit vector, not to be written to, and whether it was known."""

    vector: Vector
    was_known: bool


@dataclass(frozen=True, slots=True)
class QueryCache:
    """The vectors of the latest queries; safe to use from several threads.

    Each principal has entries of its own, so that no one can tell from an answer's speed what someone else asked.
    Texts are kept as hashes.
    """

    kept: KeptVectors

    def encode(self, text: str, *, encoder: Encoder, principal: str) -> CachedVector:
        """Return the encoder's vector of a query, kept from the last time this principal asked it or new.

        Raises EncoderError if the model fails.
        """
        known = self.known(text, encoder=encoder, principal=principal)
        if known is not None:
            return known
        key = (principal, *text_key(encoder, text))
        return CachedVector(self.kept.keep(key, encoder.encode_query(text)), was_known=False)

    def known(self, text: str, *, encoder: Encoder, principal: str) -> CachedVector | None:
        """Return the vector kept from the last time this principal asked it; None where there is none."""
        vector = self.kept.get((principal, *text_key(encoder, text)))
        return None if vector is None else CachedVector(vector, was_known=True)
