"""Stored vectors of a text's parts, tokens or sentences: one bit per component around the text's mean vector.

The vectors of a text have much in common, which the mean has; of what remains, the signs keep the order of inner
products with a query's vectors. There is nothing to train, so the vectors of every model and language are compressed
alike. With 384 components a vector takes 50 bytes and the mean 386: merged token vectors at most 4 kB.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Self

import numpy as np

from retrieval.encoders.pooling import Floats, unit_length

MAX_TOKENS: Final = 72  #: Token vectors of a text; more are merged.
_FLOAT: Final = "<f2"
_FLOAT_BYTES: Final = 2
_STEPS: Final = 127


@dataclass(frozen=True, slots=True)
class CompressedVectors:
    """The compressed vectors of a text's parts: vector = step x mean + scale x signs."""

    step: float  #: At least 0.
    mean: np.ndarray[tuple[int], np.dtype[np.int8]]  #: Shape (dim,), -127 to 127.
    scales: Floats  #: Shape (vectors,), at least 0.
    bits: np.ndarray[tuple[int, int], np.dtype[np.uint8]]  #: Shape (vectors, dim / 8): 1 for positive components.

    @classmethod
    def of(cls, vectors: Floats) -> Self:
        """Compress the unit vectors of a text's parts, shape (parts, dim).

        The scale makes the inner product of what remains with its signs exact. Gao and Long, RaBitQ, SIGMOD 2024,
        without their rotation.
        """
        centre = vectors.sum(axis=0) / max(1, len(vectors))
        step = float(np.float16(np.abs(centre).max() / _STEPS))
        mean = np.rint(centre / (step or 1)).clip(-_STEPS, _STEPS).astype(np.int8)
        rest = vectors - step * mean
        sizes = np.abs(rest).sum(axis=1)
        scales = ((rest**2).sum(axis=1) / np.where(sizes > 0, sizes, 1)).astype(_FLOAT).astype(np.float32)
        return cls(step, mean, scales, np.packbits(rest > 0, axis=1))

    @classmethod
    def of_tokens(cls, vectors: Floats) -> Self:
        """Compress the unit vectors of a text's tokens, shape (tokens, dim), merged to at most 72."""
        return cls.of(merge(vectors, MAX_TOKENS))

    @classmethod
    def read(cls, stored: bytes, dim: int) -> Self:
        """Return the vectors that `to_bytes` wrote, of `dim` components; raise ValueError for another length."""
        width = -(-dim // 8)
        count, rest = divmod(len(stored) - _FLOAT_BYTES - dim, _FLOAT_BYTES + width)
        if count < 0 or rest:
            raise ValueError(f"these are not vectors of {dim} components")
        (step,) = np.frombuffer(stored, _FLOAT, 1)
        mean = np.frombuffer(stored, np.int8, dim, _FLOAT_BYTES)
        scales = np.frombuffer(stored, _FLOAT, count, _FLOAT_BYTES + dim).astype(np.float32)
        bits = np.frombuffer(stored, np.uint8, count * width, len(stored) - count * width)
        return cls(float(step), mean, scales, bits.reshape(count, width))

    def to_bytes(self) -> bytes:
        """Return step, mean, scales and bits; step and scales as little-endian half floats."""
        parts = (np.array(self.step, _FLOAT), self.mean, self.scales.astype(_FLOAT), self.bits)
        return b"".join(part.tobytes() for part in parts)


def products(query: Floats, stored: CompressedVectors) -> Floats:
    """Return the inner product of each compressed vector with a query's vector of shape (dim,): shape (vectors,)."""
    signs = 2 * np.unpackbits(stored.bits, axis=1, count=len(query)).astype(np.float32) - 1
    return stored.step * np.float32(query @ stored.mean) + stored.scales * (signs @ query)


def max_sims(query: Floats, texts: Sequence[CompressedVectors]) -> list[float]:
    """Return for each text the mean over the query's vectors of the highest inner product with one of the text's.

    0 without vectors. An inner product with a compressed vector is that with the mean, and the scale times the sum of
    the query's components with their signs, which is twice the sum of those with a 1, less the sum of all.
    """
    scores = [0.0] * len(texts)
    places = [place for place, text in enumerate(texts) if len(text.bits)]
    if not (len(query) and places):
        return scores
    found = [texts[place] for place in places]
    ones = np.unpackbits(np.concatenate([it.bits for it in found]), axis=1, count=query.shape[1]).astype(np.float32)
    signed = 2 * (query @ ones.T) - query.sum(axis=1, keepdims=True)
    starts = np.cumsum([0, *(len(it.bits) for it in found[:-1])])
    highest = np.maximum.reduceat(signed * np.concatenate([it.scales for it in found]), starts, axis=1)
    best = highest + query @ np.stack([it.step * it.mean for it in found], dtype=np.float32, casting="same_kind").T
    for place, score in zip(places, best.mean(axis=0), strict=True):
        scores[place] = float(score)
    return scores


def merge(vectors: Floats, limit: int) -> Floats:
    """Return at most `limit` unit vectors: of the nearest two, the mean replaces both, until there are so few.

    Ward's criterion: merged are the two clusters whose sum of squared distances from their means grows least. Clavié,
    Chaffin and Adams, Reducing the Footprint of Multi-Vector Retrieval with Token Pooling, 2024.
    """
    count = len(vectors)
    if count <= limit:
        return vectors
    sums, sizes = vectors.astype(np.float32), np.ones(count, np.float32)
    # The growth for two single vectors is half of their squared distance, 1 - cosine.
    growth = 1 - sums @ sums.T
    np.fill_diagonal(growth, np.inf)
    for _ in range(count - limit):
        one, other = divmod(int(growth.argmin()), count)
        # Lance and Williams, 1967: what merging with the union costs, by what merging with each part and both cost.
        both = sizes[one] + sizes[other]
        row = (sizes + sizes[one]) * growth[one] + (sizes + sizes[other]) * growth[other] - sizes * growth[one, other]
        row /= sizes + both
        sums[one] += sums[other]
        sizes[one] = both
        row[one] = np.inf
        growth[one], growth[:, one] = row, row
        growth[other], growth[:, other] = np.inf, np.inf
        sizes[other] = 0
    return unit_length(sums[sizes > 0])
