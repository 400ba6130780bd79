"""Badges: what a reader should know about a search before reading its hits."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from explorer import wording
from retrieval.engine.state import Span
from retrieval.search.outcome import SearchOutcome

#: Notes that are worth a badge though nothing fell back.
_TOLD: Final = frozenset(
    {
        "fulltext_relaxed",
        "mode",
        "overridden",
        "query_cut",
        "access_breach",
        "stale_hits",
        "route_skip",
        "route_window",
        "route_project",
        "route_let_go",
        "no_compartment",
        "words_alone",
        "documents_missing",
        "fallback_exhausted",
        "source_recovered",
        "source_missing",
    }
)
#: Notes whose text says all: how a misspelled name was read. The log has not that text.
_SPOKEN: Final = frozenset({"spelling"})


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
            if note.code in _SPOKEN and note.text:
                yield Badge(note.text.rstrip("."), "It stands so in one of the best hits.", note.degraded)
            elif note.degraded or note.code in _TOLD | _SPOKEN:
                yield Badge(wording.note_label(note.code), note.text or "As the log has it.", note.degraded)
