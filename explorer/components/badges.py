"""Badges: what a reader should know about a search before reading its hits."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from explorer import wording
from retrieval.engine.state import Span
from retrieval.search.outcome import SearchOutcome


@dataclass(frozen=True, slots=True)
class Badge:
    """A word with its explanation."""

    text: str
    detail: str
    #: Something fell back or was cut short.
    degraded: bool


def badges(outcome: SearchOutcome) -> tuple[Badge, ...]:
    """Return the badges of a search, what degraded it first, each once."""
    return badges_of_spans(outcome.trace)


def badges_of_spans(spans: Iterable[Span]) -> tuple[Badge, ...]:
    """Return the badges of a search, made now or logged, of which these are the spans."""
    found = dict.fromkeys(_badges(spans))
    return tuple(sorted(found, key=lambda badge: not badge.degraded))


def _badges(spans: Iterable[Span]) -> Iterator[Badge]:
    for span in spans:
        for note in span.notes:
            if note.quotes and note.text and note.code in wording.BADGES:
                yield Badge(note.text.rstrip("."), "One of the best hits has this spelling.", note.degraded)
            elif note.degraded or note.code in wording.BADGES:
                yield Badge(wording.note_label(note.code), note.text or "From the query log.", note.degraded)
