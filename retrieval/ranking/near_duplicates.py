"""Removing hits that repeat another: one rule for what is dropped, two ways to find candidates. Pure.

By **words**: pairs whose simhash fingerprints are close are compared word by word. By **signature**: a MinHash
signature of 128 minima is cut into 25 bands of 5. Two texts of Jaccard similarity s share a band with probability
1 - (1 - s**5)**25: 0.99995 at 0.8, 0.55 at 0.5 and 0.01 at 0.2. Pairs that share one are compared by the complete
signature (Leskovec, Rajaraman and Ullman, "Mining of Massive Datasets", 3.4).
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from retrieval.engine.state import Drop, DropReason
from retrieval.engine.types import Hit, Ranking
from retrieval.text.fingerprints import (
    PERMUTATIONS,
    Shingles,
    close_pairs,
    hamming_limit,
    jaccard,
    shingles,
    similarity,
    words_after_words,
    words_of,
)

#: Negations; "t" is what is left of "don't".
_NEGATIONS: Final = frozenset({
    "not", "no", "never", "none", "nor", "without", "cannot", "t",
    "nicht", "kein", "keine", "keinen", "keinem", "keiner", "nie", "niemals", "ohne",
    "ne", "n", "pas", "jamais", "sans", "aucun", "aucune", "nunca", "sin", "ningún", "ninguna", "non", "mai", "senza",
})  # fmt: skip
#: Words up to this length are articles and the like; one in the place of another changes little.
_MAX_SMALL_WORD: Final = 3
Preference = Callable[[Hit], tuple[float, ...]]
#: The similarity of the hits at two places, 0 where they do not count as near duplicates.
Compare = Callable[[int, int], float]
_DIGITS: Final = re.compile(r"\d+")
#: Pairs whose words are compared in one search; a pool of near duplicates only must not use up the time.
_MAX_COMPARED: Final = 200
_BAND_BYTES: Final = 5
_BANDS: Final = PERMUTATIONS // _BAND_BYTES


def resemblance(one: "Words", other: "Words", minimum: float) -> float:
    """Return the Jaccard similarity of two texts' words, three in a row, when they say the same; else 0.

    They do when the similarity is at least `minimum` and they differ in no word that changes what is said: a number
    (the order of the numbers counts too), a negation, a name. One may have words that the other lacks; but where each
    has such words, longer than articles and the like, one thing replaces another.
    """
    if one.numbers != other.numbers:
        return 0.0
    similarity = jaccard(one.shingles, other.shingles)
    if similarity < minimum:
        return 0.0
    extra = [set(one.counts - other.counts), set(other.counts - one.counts)]
    is_replaced = all(any(len(word) > _MAX_SMALL_WORD for word in words) for words in extra)
    telling = _NEGATIONS | one.names | other.names
    return similarity if not is_replaced and telling.isdisjoint(extra[0] | extra[1]) else 0.0


@dataclass(frozen=True)
class Words:
    """A text's words; what a comparison needs of them is computed on demand."""

    text: str

    @cached_property
    def numbers(self) -> list[str]:
        """The numbers, and the words that hold a digit, in order."""
        return [word for word in self._words if any(map(str.isdigit, word))]

    @cached_property
    def shingles(self) -> Shingles:
        """Every three words in a row, case folded."""
        return shingles(self._folded)

    @cached_property
    def counts(self) -> Counter[str]:
        """How often each word occurs in the text, case folded."""
        return Counter(self._folded)

    @cached_property
    def names(self) -> frozenset[str]:
        """The words that are capitalised right after another word, and identifiers; case folded.

        The first word of a sentence or line is none by its capital alone.
        """
        following = words_after_words(self.text)
        return frozenset(
            word.casefold()
            for word in self._words
            if "_" in word or any(map(str.isupper, word[1:])) or word in following
        )

    @cached_property
    def _words(self) -> list[str]:
        return words_of(self.text)

    @cached_property
    def _folded(self) -> list[str]:
        return [word.casefold() for word in self._words]


def drop_by_words(
    hits: Ranking, *, preference: Preference, min_similarity: float, top_k: int
) -> tuple[Ranking, tuple[Drop, ...]]:
    """Keep one of several hits with the same or nearly the same words (`resemblance`), in the best place of its group.

    The hit with the highest preference stays; among equals the higher-ranked one, among equal scores the one with the
    lower chunk id. A hit is dropped only for one that it resembles itself, never for one that resembles a third. Only
    as many hits are compared as `top_k` unique ones need, 200 pairs at most; near duplicates behind them may stay. The
    order is otherwise unchanged.
    """
    # By preference, then by the first place of an equal score, then by chunk id.
    level: dict[tuple[str, float], int] = {}
    for place, hit in enumerate(hits):
        level.setdefault((hit.score_type, hit.score), place)
    keys = [([-it for it in preference(hit)], level[hit.score_type, hit.score], hit.chunk_id) for hit in hits]
    order = sorted(range(len(hits)), key=keys.__getitem__)
    copies: dict[str, int] = {}
    first = {place: copies.setdefault(hits[place].chunk.content_hash, place) for place in order}
    order = [place for place in order if first[place] == place]
    candidates = _close_by_simhash(hits, order, min_similarity)
    compare = _word_comparison(hits, min_similarity)
    window = top_k
    while True:
        representatives = _representatives(order, candidates, compare, window)
        groups = [representatives[first[place]] for place in range(len(hits))]
        shown = len({kept for kept, _ in groups[:window]})
        if shown >= top_k or window >= len(hits):
            return _split(hits, groups, min_similarity)
        window += top_k - shown


def drop_by_signature(hits: Ranking, *, min_similarity: float) -> tuple[Ranking, tuple[Drop, ...]]:
    """Keep the highest-ranked of several hits whose MinHash signatures have at least this estimated Jaccard similarity.

    A hit is dropped only for a retained one that it resembles itself. The order is otherwise unchanged.
    """
    candidates = _sharing_bands([hit.chunk.minhash for hit in hits])
    if not candidates:
        return hits, ()

    def compare(place: int, other: int) -> float:
        found = similarity(hits[place].chunk.minhash, hits[other].chunk.minhash)
        return found if found >= min_similarity else 0.0

    representatives = _representatives(range(len(hits)), candidates, compare, len(hits))
    return _split(hits, [representatives[place] for place in range(len(hits))], min_similarity)


def _representatives(
    order: Iterable[int], candidates: Mapping[int, Sequence[int]], compare: Compare, window: int
) -> dict[int, tuple[int, float]]:
    """Return for each place the place that replaces it, or itself if it stays, and how alike they are.

    `order` has the most preferred place first; `candidates` has for a place those preferred to it. Of two near
    duplicates one has to be placed before `window`.
    """
    found: dict[int, tuple[int, float]] = {}
    for place in order:
        found[place] = (place, 1.0)
        for other in candidates.get(place, ()):
            if found[other][0] == other and min(place, other) < window and (likeness := compare(place, other)):
                found[place] = (other, likeness)
                break
    return found


def _split(
    hits: Ranking, groups: Sequence[tuple[int, float]], min_similarity: float
) -> tuple[Ranking, tuple[Drop, ...]]:
    kept = tuple(hits[place] for place in dict.fromkeys(place for place, _ in groups))
    drops = []
    for hit, (place, likeness) in zip(hits, groups, strict=True):
        if (twin := hits[place]) is not hit:
            is_copy = hit.chunk.content_hash == twin.chunk.content_hash
            detail = f"same text as {twin.chunk_id}" if is_copy else f"{likeness:.2f} like {twin.chunk_id}"
            numbers = {"likeness": likeness, "minimum": min_similarity}
            drops.append(Drop(hit.chunk_id, DropReason.DUPLICATE, detail, numbers, instead=twin.chunk_id))
    return kept, tuple(drops)


def _close_by_simhash(hits: Ranking, order: Sequence[int], min_similarity: float) -> Mapping[int, list[int]]:
    """Return for each place those before it in `order` whose fingerprints are close and whose digits are the same."""

    def digits(number: int) -> int:
        return hash(tuple(_DIGITS.findall(hits[order[number]].chunk.text)))

    close: defaultdict[int, list[int]] = defaultdict(list)
    fingerprints = [hits[place].chunk.simhash for place in order]
    for one, other in close_pairs(fingerprints, hamming_limit(min_similarity), digits):
        close[order[other]].append(order[one])
    return close


def _word_comparison(hits: Ranking, min_similarity: float) -> Compare:
    """Return what compares the words of two places, once each, and nothing more after 200 pairs."""
    words = [Words(hit.chunk.text) for hit in hits]
    compared: dict[tuple[int, int], float] = {}

    def compare(place: int, other: int) -> float:
        pair = (min(place, other), max(place, other))
        if pair not in compared and len(compared) < _MAX_COMPARED:
            compared[pair] = resemblance(words[pair[0]], words[pair[1]], min_similarity)
        return compared.get(pair, 0.0)

    return compare


def _sharing_bands(signatures: Sequence[bytes]) -> Mapping[int, Sequence[int]]:
    places = [place for place, signature in enumerate(signatures) if signature]
    minima = np.frombuffer(b"".join(signatures), np.uint8).reshape(len(places), PERMUTATIONS)
    bands = minima[:, : _BANDS * _BAND_BYTES].reshape(len(places), _BANDS, _BAND_BYTES)
    keys = bands.astype(np.uint64) @ (1 << 8 * np.arange(_BAND_BYTES, dtype=np.uint64))
    sharing: defaultdict[int, list[int]] = defaultdict(list)
    if (np.diff(np.sort(keys, axis=0), axis=0) == 0).any():
        for one, other in np.argwhere(np.tril((keys[:, None] == keys).any(axis=2), -1)):
            sharing[places[one]].append(places[other])
    return sharing
