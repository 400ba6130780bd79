"""Which statements of different documents answer the same thing differently, and which of them comes first. Pure.

Two statements are about the same thing if they have nearly the same words around their values, or if both answer the
question with one value: no name or code that only one of them has, no different years, no headings that name different
things. They conflict if a value at the same place differs, or if one denies what the other says.
"""

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from retrieval.engine.types import Passage
from retrieval.ranking.quotes.asked import Asked, any_of, cues
from retrieval.ranking.quotes.claims import DURATIONS, MAX_COMPARED, Claim, claims_of
from retrieval.ranking.quotes.quantities import quantities
from retrieval.ranking.quotes.ranker import Asking
from retrieval.ranking.quotes.statements import DATE, TIME

MAX_PLACE: Final = 5  #: A conflict is central if one of its statements is among so many best ones.
_MIN_LIKENESS: Final = 0.6  #: Minimum Jaccard similarity of the words of two statements.
_MIN_LIKENESS_DENIED: Final = 0.8
_MIN_LIKENESS_ANSWERING: Final = 0.3  #: The same of two that both answer the question.
_MIN_SHARE: Final = 0.5  #: Minimum share of the question's idf in a statement that may answer it.
_MIN_TOKENS: Final = 5  #: Words and values of two sentences that are equal but for the values.
_MIN_SHARED: Final = 3  #: Words that two sentences must share; one less if one of the question is among them.
_LIKE_TITLES: Final = 0.5  #: Titles that are so alike, but for a word in the place of another, name different things.
_MAX_EXPLAINED: Final = 120  #: Characters of a statement in an explanation.
_VERSION: Final = re.compile(r"v\d+")
_YEAR: Final = re.compile(r"(?<!\d)(?:19|20)\d\d(?!\d)")


@dataclass(frozen=True, slots=True)
class Conflict:
    """Claims about the same thing that differ: the one that counts most, and the others."""

    first: Claim
    equal: tuple[Claim, ...]  #: Those that say otherwise and may count as well, the most trusted and newest first.
    old: tuple[Claim, ...]  #: Those that say otherwise and are superseded, drafts or of earlier editions.
    beside: tuple[Claim, ...]  #: Those of other years than the question asks about.
    is_central: bool  #: Whether it is about what the question asks.

    @property
    def is_doubt(self) -> bool:
        """Whether documents that count alike give two answers to the question."""
        return self.is_central and bool(self.equal) and max(it.share for it in (self.first, *self.equal)) >= _MIN_SHARE

    @property
    def alternatives(self) -> tuple[Claim, ...]:
        """The equal ones without those that only repeat another."""
        by_value = {(it.stated.values, it.stated.denies): it for it in reversed(self.equal)}
        return tuple(reversed(by_value.values()))

    @property
    def lesser(self) -> tuple[Claim, ...]:
        """All but the first one."""
        return (*self.equal, *self.old, *self.beside)


def asks_past(question: str) -> bool:
    """Return whether a question names a year, or is about what counted before."""
    lowered = question.lower()
    return any(pattern.search(lowered) for pattern in (_YEAR, _past()))


def find_conflicts(
    question: str, passages: Sequence[Passage], asking: Asking, trust: Mapping[int, int], *, limit: int = MAX_COMPARED
) -> tuple[Conflict, ...]:
    """Return the conflicts of the `limit` statements nearest to a question with others, the nearest first.

    `trust` is that of each connection, higher for more. Where the question names a year, what is of this year counts.
    """
    asked = quantities(question, asking.language)
    claims = claims_of(passages, asking, asked)
    years = frozenset(int(it.value) for it in asked if it.is_year)
    settled: set[int] = set()
    conflicts = []
    for at, claim in enumerate(claims[:limit]):
        if at in settled:
            continue
        alike = [
            other
            for other in range(at + 1, len(claims))
            if other not in settled and _are_alike(claim, claims[other], claims, asking)
        ]
        settled.update(alike)
        group = [claim, *(claims[other] for other in alike)]
        is_central = at < MAX_PLACE and bool(claim.lexemes)
        found = _conflict(group, claims, years, trust, asking, is_central=is_central) if alike else None
        conflicts += [found] if found else []
    return tuple(conflicts)


def disagreement(conflicts: Sequence[Conflict]) -> str:
    """Return a sentence on the first conflict about the question between documents that count alike; empty without."""
    for it in conflicts:
        if it.is_doubt:
            said = ", ".join(
                f"“{_shortened(claim.text)}” [{claim.passage.number}]" for claim in (it.first, *it.alternatives)
            )
            return f"Documents contradict each other: {said}."
    return ""


def _shortened(text: str) -> str:
    return text if len(text) <= _MAX_EXPLAINED else f"{text[:_MAX_EXPLAINED].rstrip()}…"


def _are_alike(one: Claim, other: Claim, claims: Sequence[Claim], asking: Asking) -> bool:
    """Return whether two claims of different documents are about the same thing."""
    if one.document == other.document or one.is_row != other.is_row:
        return False
    is_next = not one.is_row and _is_next_issue(one, other, asking)
    are_same = _are_same_row(one, other) if one.is_row else is_next or _are_same_sentence(one, other, asking)
    if not are_same or _are_of_different_things(one, other) or _are_apart(one.stated.years, other.stated.years):
        return False
    return is_next or (_is_anchored(one, other, claims) and not _are_of_different_days(one, other))


def _are_same_sentence(one: Claim, other: Claim, asking: Asking) -> bool:
    """Return whether two sentences are about the same thing.

    They are not with another bound ("at least", "at most") or unit of time ("a day", "a week").
    """
    if not (_is_same_frame(one, other) or _are_answers(one, other, asking)):
        return False
    units = one.durations, other.durations
    return not _are_apart(one.bounds, other.bounds) and (units[0] <= units[1] or units[1] <= units[0])


def _are_apart(one: frozenset[Any], other: frozenset[Any]) -> bool:
    """Return whether both name something, and nothing in common."""
    return bool(one and other) and one.isdisjoint(other)


def _are_of_different_things(one: Claim, other: Claim) -> bool:
    """Return whether a name, or the titles and headings, tell that two claims are about different things."""
    names = (one.stated.names - other.stated.words - other.place_words) | (
        other.stated.names - one.stated.words - one.place_words
    )
    codes = [frozenset(filter(_is_code, it.title.names)) for it in (one, other)]
    if names or _are_apart(*codes) or _are_replaced(one.title.words, other.title.words, _LIKE_TITLES):
        return True
    headings = [Counter(it.words for it in claim.headings) for claim in (one, other)]
    extra = [frozenset[str]().union(*left) for left in (headings[0] - headings[1], headings[1] - headings[0])]
    return bool(headings[0] & headings[1]) and _are_apart(*extra)


def _is_code(name: str) -> bool:
    return any(map(str.isdigit, name)) and not _VERSION.fullmatch(name)


def _are_replaced(one: frozenset[str], other: frozenset[str], min_likeness: float) -> bool:
    """Return whether each of two texts that are much alike has words that the other lacks."""
    return _likeness(one, other) >= min_likeness and bool(one - other) and bool(other - one)


def _likeness(one: frozenset[str], other: frozenset[str]) -> float:
    """Return the Jaccard similarity of words; 0 without any."""
    shared = len(one & other)
    return shared / (len(one) + len(other) - shared) if one or other else 0.0


def _are_same_row(one: Claim, other: Claim) -> bool:
    """Return whether two rows have the same name, perhaps a longer one, under like headers."""
    if not one.label.words or not other.label.words or not one.header.words or not other.header.words:
        return False
    is_longer = one.label.words <= other.label.words or other.label.words <= one.label.words
    return (
        is_longer
        and min(map(_likeness, (one.label.words, one.header.words), (other.label.words, other.header.words)))
        >= _MIN_LIKENESS
    )


def _is_same_frame(one: Claim, other: Claim) -> bool:
    """Return whether two sentences have nearly the same words, to which one of them may add some.

    These must not be words of the question, unless they are in the title or headings of the other.
    """
    words = one.stated.words, other.stated.words
    # With too few words in common, which is usual, no more is read.
    missing = words[0] - other.stems
    most = (1 - _MIN_LIKENESS) * len(words[0])
    if len(words[0]) - len(missing) < _MIN_SHARED - 1 or (
        len(missing) > most and len(missing - other.place_words) > most
    ):
        return False
    if one.stated.tokens == other.stated.tokens and len(one.stated.tokens) >= _MIN_TOKENS:
        return True
    extra = words[0] - words[1], words[1] - words[0]
    different = (extra[0] - other.place_words) | (extra[1] - one.place_words)
    every = words[0] | words[1]
    shared = len(words[0] & words[1]) + bool(one.lexemes & other.lexemes)
    if all(extra) or shared < _MIN_SHARED or len(every - different) < _MIN_LIKENESS * len(every):
        return False
    return different.isdisjoint(one.lexemes | other.lexemes)


def _are_answers(one: Claim, other: Claim, asking: Asking) -> bool:
    """Return whether two sentences answer a question for a value: with most of its terms, one value, and like words.

    They are about different things if a single word takes the place of others ("adult tickets", "child tickets").
    """
    if min(one.share, other.share) < _MIN_SHARE or one.refers or other.refers:
        return False
    if len(one.stated.words & other.stems) < _MIN_SHARED:
        return False
    words = one.stated.words, other.stated.words
    if len(words[0] & words[1]) < _MIN_SHARED or _likeness(*words) < _MIN_LIKENESS_ANSWERING:
        return False
    extra = len(words[0] - words[1]), len(words[1] - words[0])
    slots = [_asked_slots(it, asking.kinds) for it in (one, other)]
    return min(extra) != 1 and len(slots[0]) == 1 and slots[0] == slots[1] and one.bounds == other.bounds


def _asked_slots(claim: Claim, kinds: frozenset[Asked]) -> list[str]:
    return [slot for slot in claim.stated.slots if _is_asked(slot, kinds)]


def _are_of_different_days(one: Claim, other: Claim) -> bool:
    """Return whether two claims that differ in something else are of different days, as two meetings of a year are.

    The days are in the claims or in the titles of their documents; titles of two years are of two editions.
    """
    differing = {one.stated.slots[at] == DATE for at, _, _ in one.stated.differences(other.stated)}
    are_meetings = (
        one.title.words == other.title.words
        and one.title.years == other.title.years
        and any(one.title.slots[at] == DATE for at, _, _ in one.title.differences(other.title))
        and not (one.is_old or other.is_old)
    )
    return len(differing) > 1 or are_meetings


def _is_anchored(one: Claim, other: Claim, claims: Sequence[Claim]) -> bool:
    """Return whether the claims have equal first values if their documents have several claims with the same words.

    Then the first value says which is which, as in "up to 3 days" and "up to 7 days".
    """

    def is_alone(claim: Claim) -> bool:
        return not any(
            it is not claim
            and it.document == claim.document
            and it.label.words == claim.label.words
            and it.text != claim.text
            for it in claims
        )

    return (is_alone(one) and is_alone(other)) or not any(at == 0 for at, _, _ in one.stated.differences(other.stated))


def _is_next_issue(one: Claim, other: Claim, asking: Asking) -> bool:
    """Return whether two claims stand at the same place of two issues of a document and answer the same question.

    Each holds one value of the kind that is asked for, such as a date, and the same other values; one holds all terms
    of the question that the other holds.
    """
    if one.title.words != other.title.words or not one.headings or one.headings != other.headings:
        return False
    slots = [_asked_slots(it, asking.kinds) for it in (one, other)]
    if len(slots[0]) != 1 or slots[0] != slots[1]:
        return False
    rest = [
        [value for slot, value in zip(it.stated.slots, it.stated.values, strict=True) if slot != slots[0][0]]
        for it in (one, other)
    ]
    common = one.lexemes & other.lexemes
    return rest[0] == rest[1] and bool(common) and common in {one.lexemes, other.lexemes}


def _is_asked(slot: str, kinds: frozenset[Asked]) -> bool:
    if slot in {DATE, TIME}:
        return Asked.DATE in kinds
    return Asked.DURATION in kinds if slot in DURATIONS else Asked.NUMBER in kinds and bool(slot)


def _conflict(
    group: Sequence[Claim],
    claims: Sequence[Claim],
    years: frozenset[int],
    trust: Mapping[int, int],
    asking: Asking,
    *,
    is_central: bool,
) -> Conflict | None:
    """Return the conflict of claims about the same thing; None if they agree."""
    of_year = [it for it in group if _is_of(it, years)] or list(group)
    beside = tuple(it for it in group if it not in of_year)

    def standing(claim: Claim) -> tuple[bool, bool, int, float]:
        chunk = claim.passage.hit.chunk
        changed = chunk.modified_at.timestamp() if chunk.modified_at else -math.inf
        return claim.is_old, _is_earlier(claim, of_year), -trust.get(chunk.connection_id, 0), -changed

    first, *others = sorted(of_year, key=standing)
    others = [it for it in others if _are_alike(first, it, claims, asking) and _differ(first, it, asking)]
    if not others and not beside:
        return None
    old = tuple(it for it in others if (it.is_old and not first.is_old) or _is_earlier(it, of_year))
    return Conflict(first, tuple(it for it in others if it not in old), old, beside, is_central)


def _is_of(claim: Claim, years: frozenset[int]) -> bool:
    """Return whether a claim is of one of some years: by its text, title, headings or address, else its last change."""
    chunk = claim.passage.hit.chunk
    named = _YEAR.findall(f"{claim.unit.text} {claim.unit.header} {claim.quoted.place} {chunk.uri}")
    found = set(map(int, named)) or ({chunk.modified_at.year} if chunk.modified_at else set())
    return not years or not years.isdisjoint(found)


def _is_earlier(claim: Claim, group: Sequence[Claim]) -> bool:
    """Return whether there is a later edition of the same document among the others: "Tariff 2026" of "Tariff 2025"."""
    year = max(claim.title.years, default=0)
    return any(year and it.title.words == claim.title.words and max(it.title.years, default=0) > year for it in group)


def _differ(one: Claim, other: Claim, asking: Asking) -> bool:
    """Return whether two claims about the same thing differ in a value, or one denies what the other says."""
    if one.stated.differences(other.stated):
        return True
    if _is_next_issue(one, other, asking):
        values = [
            {
                value
                for slot, value in zip(it.stated.slots, it.stated.values, strict=True)
                if _is_asked(slot, asking.kinds)
            }
            for it in (one, other)
        ]
        return values[0] != values[1]
    return (
        one.stated.denies != other.stated.denies
        and _likeness(one.stated.words, other.stated.words) >= _MIN_LIKENESS_DENIED
    )


@cache
def _past() -> re.Pattern[str]:
    return any_of(cues()["past"]["words"])
