"""The trace: every span in the order it ran, on one time line."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from corecube.scope import AccessScope
from explorer import wording
from explorer.components.bars import percent
from explorer.components.events import EventLine, event_lines
from explorer.components.funnel import removed
from explorer.wording.durations import milliseconds
from retrieval.engine.state import Note, Span
from retrieval.search.outcome import SearchOutcome


@dataclass(frozen=True, slots=True)
class TraceRow:
    """One span."""

    stage: str
    purpose: str
    #: Ran inside the row above.
    nested: bool
    hits_in: int
    hits_out: int
    dropped: int
    milliseconds: str
    #: Start and length in percent of the search's whole time.
    x: float
    width: float
    degraded: bool
    notes: tuple[Note, ...]
    events: tuple[EventLine, ...] = ()


def trace_rows(outcome: SearchOutcome) -> tuple[TraceRow, ...]:
    """Return the spans as rows, each parent before its children."""
    return span_rows(outcome.trace, outcome.state.scope)


def span_rows(spans: Sequence[Span], scope: AccessScope) -> tuple[TraceRow, ...]:
    """Return the rows of a search's spans, whether it was just run or is read from its record.

    `scope` is what their reader may see.
    """
    whole = sum(span.seconds for span in spans if not span.parent)
    return tuple(_row(span, started, whole, scope) for span, started in _timed(spans))


def _timed(trace: Sequence[Span]) -> Iterator[tuple[Span, float]]:
    """Yield every span with its start in seconds: stages follow each other, children start with their parent."""
    clock = 0.0
    for span in trace:
        if span.parent:
            continue
        yield span, clock
        for child in trace:
            if child.parent == span.stage:
                yield child, clock
        clock += span.seconds


def _row(span: Span, started: float, whole: float, scope: AccessScope) -> TraceRow:
    return TraceRow(
        stage=span.stage,
        purpose=wording.stage_purpose(span.stage),
        nested=bool(span.parent),
        hits_in=span.hits_in,
        hits_out=span.hits_out,
        dropped=removed(span),
        milliseconds=milliseconds(span.seconds),
        x=round(percent(started, whole), 2),
        width=round(percent(span.seconds, whole), 2),
        degraded=any(note.degraded for note in span.notes),
        notes=span.notes,
        events=event_lines(span.events, scope),
    )
