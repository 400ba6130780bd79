"""Removing hits that repeat what another hit already says."""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from retrieval.engine.state import Drop, DropReason
from retrieval.engine.types import Hit, Ranking
from retrieval.text.simhash import (
    Shingles,
    close_pairs,
    hamming_limit,
    jaccard,
    shingles,
    words_after_words,
    words_of,
)

Preference = Callable[[Hit], tuple[float, ...]]

#: Words that turn a sentence into its opposite; "t" is what is left of "don't".
_NEGATIONS: Final = frozenset({
    "not", "no", "never", "none", "nor", "without", "cannot", "t",
    "nicht", "kein", "keine", "keinen", "keinem", "keiner", "nie", "niemals", "ohne",
    "ne", "n", "pas", "jamais", "sans", "aucun", "aucune", "nunca", "sin", "ningún", "ninguna", "non", "mai", "senza",
})  # fmt: skip
#: Words up to this length are articles and the like; one in the place of another changes little.
_MAX_SMALL_WORD: Final = 3
_DIGITS: Final = re.compile(r"\d+")
#: Pairs whose words are compared in one search; a pool of nothing but near duplicates must not take its time.
_MAX_COMPARED: Final = 200


def drop_duplicates(
    hits: Ranking, *, preference: Preference, min_similarity: float, top_k: int
) -> tuple[Ranking, tuple[Drop, ...]]:
    """Keep one of several hits with the same or nearly the same text, in the best place of its group.

    The kept one has the highest preference of the group; among equals the better placed one stays, among equal
    scores the one with the lower chunk id. A hit is dropped only for one that it resembles itself, never for one
    that resembles a third. Nearly the same: see `resemblance`. As many hits are compared as `top_k` kept ones need,
    200 pairs at most; behind them near duplicates may stay. Order is otherwise unchanged.
    """
    search = _Search(hits, _by_preference(hits, preference), min_similarity)
    window = top_k
    while True:
        groups = search.groups(window)
        shown = len({kept for place, (kept, _) in enumerate(groups) if place < window})
        if shown >= top_k or window >= len(hits):
            return _kept_and_dropped(hits, groups)
        window += top_k - shown


def resemblance(one: "Words", other: "Words", minimum: float) -> float:
    """Return the Jaccard similarity of two texts' words, three in a row, when they say the same; else 0.

    They do when the similarity is at least `least` and they differ in no word that changes what is said: a number
    (the order of the numbers counts too), a negation, a name. One may have words that the other lacks; but where each
    has such words, longer than articles and the like, one thing stands in the place of another.
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
    """A text's words; what a comparison needs of them is worked out when one asks for it."""

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
        """How often each word stands in the text, case folded."""
        return Counter(self._folded)

    @cached_property
    def names(self) -> frozenset[str]:
        """The words that are capitalised right after another word, and identifiers; case folded.

        The first word of a sentence or line is none by its capital alone.
        """
        following = words_after_words(self.text)
        return frozenset(word.casefold() for word in self._words if _is_identifier(word) or word in following)

    @cached_property
    def _words(self) -> list[str]:
        return words_of(self.text)

    @cached_property
    def _folded(self) -> list[str]:
        return [word.casefold() for word in self._words]


def _is_identifier(word: str) -> bool:
    return "_" in word or any(map(str.isupper, word[1:]))


@dataclass
class _Search:
    """Finds the hit that each hit is dropped for; comparisons are made once."""

    hits: Ranking
    #: Places, the most preferred first.
    order: Sequence[int]
    min_similarity: float
    _words: list[Words] = field(init=False)
    _first_of: Mapping[int, int] = field(init=False)
    _close: Mapping[int, list[int]] = field(init=False)
    _compared: dict[tuple[int, int], float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._words = [Words(hit.chunk.text) for hit in self.hits]
        self._first_of = self._same_texts()
        self._close = self._candidates()

    def groups(self, window: int) -> list[tuple[int, float]]:
        """Return for each place the place that is kept for it (itself where it stays) and how alike they are.

        Of two near duplicates one has to stand before the place `window`.
        """
        found: dict[int, tuple[int, float]] = {}
        for place in self.order:
            if self._first_of[place] == place:
                found[place] = self._kept_for(place, found, window)
        return [found[self._first_of[place]] for place in range(len(self.hits))]

    def _kept_for(self, place: int, found: Mapping[int, tuple[int, float]], window: int) -> tuple[int, float]:
        """Return the most preferred of the kept places that a place resembles, else itself."""
        for other in self._close.get(place, ()):
            is_kept = found.get(other, (None, 0.0))[0] == other
            if is_kept and min(place, other) < window and (likeness := self._likeness(place, other)):
                return other, likeness
        return place, 1.0

    def _likeness(self, place: int, other: int) -> float:
        pair = (min(place, other), max(place, other))
        if pair not in self._compared and len(self._compared) < _MAX_COMPARED:
            self._compared[pair] = resemblance(self._words[pair[0]], self._words[pair[1]], self.min_similarity)
        return self._compared.get(pair, 0.0)

    def _same_texts(self) -> dict[int, int]:
        """Return for each place the most preferred one with the same text."""
        first: dict[str, int] = {}
        return {place: first.setdefault(self.hits[place].chunk.content_hash, place) for place in self.order}

    def _candidates(self) -> dict[int, list[int]]:
        """Return for each place the more preferred ones whose fingerprints are close, the most preferred first."""
        firsts = [place for place in self.order if self._first_of[place] == place]
        fingerprints = [self.hits[place].chunk.simhash for place in firsts]
        close: dict[int, list[int]] = {}

        def digits(place: int) -> int:
            return hash(tuple(_DIGITS.findall(self.hits[firsts[place]].chunk.text)))

        for one, other in close_pairs(fingerprints, hamming_limit(self.min_similarity), digits):
            close.setdefault(firsts[other], []).append(firsts[one])
        return close


def _by_preference(hits: Ranking, preference: Preference) -> list[int]:
    """Return the places by preference, then by the first place of an equal score, then by chunk id."""
    level: dict[tuple[str, float], int] = {}
    for place, hit in enumerate(hits):
        level.setdefault((hit.score_type, hit.score), place)
    return sorted(
        range(len(hits)),
        key=lambda place: (
            [-value for value in preference(hits[place])],
            level[hits[place].score_type, hits[place].score],
            hits[place].chunk_id,
        ),
    )


def _kept_and_dropped(hits: Ranking, groups: Sequence[tuple[int, float]]) -> tuple[Ranking, tuple[Drop, ...]]:
    kept = tuple(hits[place] for place in dict.fromkeys(place for place, _ in groups))
    drops = (
        Drop(
            hit.chunk_id,
            DropReason.DUPLICATE,
            _detail(hit, hits[place], likeness),
            {"likeness": likeness},
            instead=hits[place].chunk_id,
        )
        for hit, (place, likeness) in zip(hits, groups, strict=True)
        if hits[place] is not hit
    )
    return kept, tuple(drops)


def _detail(dropped: Hit, kept: Hit, likeness: float) -> str:
    if dropped.chunk.content_hash == kept.chunk.content_hash:
        return f"same text as {kept.chunk_id}"
    return f"{likeness:.2f} like {kept.chunk_id}"
