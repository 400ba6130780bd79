"""The trace: every span in the order it ran, on one timeline."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from corecube.scope import AccessScope
from explorer import wording
from explorer.components.bars import percent
from explorer.components.events import EventLine, event_lines
from explorer.components.funnel import removed
from explorer.wording.durations import milliseconds
from retrieval.engine.state import Note, Span


@dataclass(frozen=True, slots=True)
class TraceRow:
    """One span."""

    stage: str
    purpose: str
    nested: bool
    hits_in: int
    hits_out: int
    dropped: int
    milliseconds: str
    #: Start and length in percent of the search's time.
    x: float
    width: float
    degraded: bool
    notes: tuple[Note, ...]
    events: tuple[EventLine, ...] = ()


def span_rows(spans: Sequence[Span], scope: AccessScope) -> tuple[TraceRow, ...]:
    """Return the spans of a search as rows, each parent before its children; `scope` is what their reader may see."""
    total = sum(span.seconds for span in spans if not span.parent)
    return tuple(
        TraceRow(
            stage=span.stage,
            purpose=wording.stage_purpose(span.stage),
            nested=bool(span.parent),
            hits_in=span.hits_in,
            hits_out=span.hits_out,
            dropped=removed(span),
            milliseconds=milliseconds(span.seconds),
            x=round(percent(started, total), 2),
            width=round(percent(span.seconds, total), 2),
            degraded=any(note.degraded for note in span.notes),
            notes=span.notes,
            events=event_lines(span.events, scope),
        )
        for span, started in _timed(spans)
    )


def _timed(spans: Sequence[Span]) -> Iterator[tuple[Span, float]]:
    """Yield every span with its start in seconds: stages run one after another, children start with their parent."""
    clock = 0.0
    for span in spans:
        if not span.parent:
            yield from ((it, clock) for it in (span, *(child for child in spans if child.parent == span.stage)))
            clock += span.seconds
