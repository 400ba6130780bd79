"""Fingerprints of texts, and the words that they are made of: sets of three consecutive words. Pure.

Simhash, close for similar texts: Charikar, "Similarity estimation techniques from rounding algorithms", STOC 2002.
Minhash, for the Jaccard similarity: Broder, "On the resemblance and containment of documents", SEQUENCES 1997, with
8 bits of each minimum (Li and König, "b-bit minwise hashing", WWW 2010).
"""

import hashlib
import math
import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

Shingles = NDArray[np.uint64]

BITS: Final = 64
_SHINGLE_WORDS: Final = 3
_MIN_WORDS: Final = 8  #: A shorter text has too few features for a meaningful distance.
#: A number with its sign, a unit or currency symbol, one character of a script without spaces, or a word (or "C++").
_WORD: Final = re.compile(
    "(?<!\\w)[-+\u2212]?\\d+(?:[.,:]\\d+)*|[%\u2030\u00b0\u20ac$\u00a3\u00a5]"
    "|[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]"
    "|[^\\W\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]+[+#]*"
)
#: Odd 64-bit constants with about as many ones as zeros (from splitmix64 and similar).
_FACTORS: Final = np.array([0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB], dtype=np.uint64)
_CACHED_WORDS: Final = 50_000
_DEVIATIONS: Final = 2.5  #: Standard deviations by which the distance of a pair may exceed its expected value.


def words_of(text: str) -> list[str]:
    """Return the words of a text as written, numbers with their sign, without punctuation."""
    return _WORD.findall(text)


def words_after_words(text: str) -> frozenset[str]:
    """Return the capitalised words of a text that follow another word and a space."""
    found = pairwise(_WORD.finditer(text))
    return frozenset(
        word[0] for before, word in found if word[0][0].isupper() and text[before.end() : word.start()] == " "
    )


def simhash(text: str) -> int:
    """Return the signed 64-bit fingerprint of a text's words, the same in every process; 0 for a text without words.

    Case and punctuation are ignored. A text of fewer than eight words gets a hash that only equal words share.
    """
    words = [word.casefold() for word in words_of(text)]
    if not words:
        return 0
    if len(words) < _MIN_WORDS:
        value = _digest(" ".join(words))
        return value - 2**BITS if value >= 2 ** (BITS - 1) else value or 1
    bits = np.unpackbits(shingles(words).astype("<u8").view(np.uint8).reshape(-1, BITS // 8), axis=1)
    ones = bits.sum(axis=0, dtype=np.int64)
    return int(np.packbits(2 * ones > len(bits)).view("<i8")[0]) or 1


def shingles(words: Sequence[str]) -> Shingles:
    """Return the hashes of every three consecutive words, each once, in ascending order; fewer words make one."""
    count = max(1, len(words) - _SHINGLE_WORDS + 1)
    hashes = np.array([_hash(word) for word in words], dtype=np.uint64)
    mixed = np.zeros(count, dtype=np.uint64)
    for place, factor in zip(range(min(_SHINGLE_WORDS, len(words))), _FACTORS, strict=False):
        mixed = (mixed ^ hashes[place : place + count]) * factor
        mixed ^= mixed >> np.uint64(29)
    return np.unique(mixed)


def jaccard(one: Shingles, other: Shingles) -> float:
    """Return the Jaccard similarity of two sets, 0 to 1."""
    shared = len(np.intersect1d(one, other, assume_unique=True))
    return shared / (len(one) + len(other) - shared)


def hamming_limit(min_similarity: float) -> int:
    """Return the distance within which nearly all pairs with at least this Jaccard similarity lie.

    Each bit differs with probability acos(c) / pi, where c = 2 J / (1 + J) is the cosine of two sets of one size
    (Charikar 2002, section 3); the limit is that mean of 64 bits and 2.5 standard deviations.
    """
    share = math.acos(min(1.0, 2 * min_similarity / (1 + min_similarity))) / math.pi
    return math.floor(BITS * share + _DEVIATIONS * math.sqrt(BITS * share * (1 - share)))


def close_pairs(fingerprints: Sequence[int], limit: int, label: Callable[[int], int]) -> list[tuple[int, int]]:
    """Return the pairs of positions, the smaller first, whose fingerprints differ in at most `limit` bits.

    The labels of both must be equal; `label` is called only for positions that are close to another. A fingerprint of
    0 is close to none.
    """
    values = np.array(fingerprints, dtype=np.int64).view(np.uint64)
    close = np.bitwise_count(values[:, None] ^ values[None, :]) <= limit
    close = np.triu(close, 1) & (values != 0)[:, None] & (values != 0)[None, :]
    involved = np.flatnonzero(close.any(axis=0) | close.any(axis=1))
    labels = np.zeros(len(values), dtype=np.int64)
    labels[involved] = [label(int(place)) for place in involved]
    close &= labels[:, None] == labels[None, :]
    return [(int(one), int(other)) for one, other in np.argwhere(close)]


@lru_cache(_CACHED_WORDS)
def _hash(word: str) -> int:
    return _digest(word)


def _digest(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=8).digest(), "little")


PERMUTATIONS: Final = 128
_BY_CHANCE: Final = 1 / 256  #: Two different minima share their 8 bits with this probability.
_MINHASH_BLOCK: Final = 4096  #: Shingles that are permuted together, to limit the memory for long texts.


def _drawn(first: int) -> NDArray[np.uint64]:
    """Return pseudo-random 64-bit numbers by splitmix64, which are the same with every release of numpy."""
    state = np.arange(first, first + PERMUTATIONS, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return state ^ (state >> np.uint64(31))


#: One permutation each: x -> factor * x + shift modulo 2**64, the factors odd.
_MINHASH_FACTORS: Final = _drawn(1) | np.uint64(1)
_MINHASH_SHIFTS: Final = _drawn(PERMUTATIONS + 1)


def minhash(text: str) -> bytes:
    """Return the signature of a text's words, a byte per permutation, without case; empty for no words."""
    words = [word.casefold() for word in words_of(text)]
    if not words:
        return b""
    lowest = np.full(PERMUTATIONS, np.iinfo(np.uint64).max, dtype=np.uint64)
    members = shingles(words)
    for start in range(0, len(members), _MINHASH_BLOCK):
        permuted = members[start : start + _MINHASH_BLOCK, None] * _MINHASH_FACTORS + _MINHASH_SHIFTS
        lowest = np.minimum(lowest, permuted.min(axis=0))
    # Eight bits of a hash of each minimum.
    return ((lowest * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(56)).astype(np.uint8).tobytes()


def similarity(one: bytes, other: bytes) -> float:
    """Return the estimated Jaccard similarity, 0 to 1 (standard error up to 0.045); 0 if a signature is empty."""
    if not one or not other:
        return 0.0
    alike = float(np.mean(np.frombuffer(one, np.uint8) == np.frombuffer(other, np.uint8)))
    return max(0.0, (alike - _BY_CHANCE) / (1 - _BY_CHANCE))
