"""Signatures of texts for estimating their Jaccard similarity. Pure.

Broder, "On the resemblance and containment of documents", SEQUENCES 1997, over sets of three consecutive words, with
8 bits of each minimum (Li and König, "b-bit minwise hashing", WWW 2010).
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from retrieval.text.simhash import shingles, words_of

PERMUTATIONS: Final = 128
_BY_CHANCE: Final = 1 / 256  #: Two different minima share their 8 bits with this probability.
_BLOCK: Final = 4096  #: Shingles that are permuted together, to limit the memory for long texts.


def _drawn(first: int) -> NDArray[np.uint64]:
    """Return pseudo-random 64-bit numbers by splitmix64, which are the same with every release of numpy."""
    state = np.arange(first, first + PERMUTATIONS, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return state ^ (state >> np.uint64(31))


#: One permutation each: x -> factor * x + shift modulo 2**64, the factors odd.
_FACTORS: Final = _drawn(1) | np.uint64(1)
_SHIFTS: Final = _drawn(PERMUTATIONS + 1)


def minhash(text: str) -> bytes:
    """Return the signature of a text's words, a byte per permutation, without case; empty for no words."""
    words = [word.casefold() for word in words_of(text)]
    if not words:
        return b""
    lowest = np.full(PERMUTATIONS, np.iinfo(np.uint64).max, dtype=np.uint64)
    members = shingles(words)
    for start in range(0, len(members), _BLOCK):
        permuted = members[start : start + _BLOCK, None] * _FACTORS + _SHIFTS
        lowest = np.minimum(lowest, permuted.min(axis=0))
    # Eight bits of a hash of each minimum.
    return ((lowest * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(56)).astype(np.uint8).tobytes()


def similarity(one: bytes, other: bytes) -> float:
    """Return the estimated Jaccard similarity, 0 to 1 (standard error up to 0.045); 0 if a signature is empty."""
    if not one or not other:
        return 0.0
    alike = float(np.mean(np.frombuffer(one, np.uint8) == np.frombuffer(other, np.uint8)))
    return max(0.0, (alike - _BY_CHANCE) / (1 - _BY_CHANCE))
