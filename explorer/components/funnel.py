"""The funnel: what each stage left, dropped and took, and what it says when opened."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from typing import Final

from explorer import wording
from explorer.components.bars import BarPart, percent, stacked
from explorer.components.drops import ChunkLabels, DropList, drop_list
from explorer.components.events import EventLine, event_lines
from explorer.wording.durations import milliseconds
from retrieval.engine.state import Note, Span
from retrieval.engine.tunables import Tunables
from retrieval.presets.preset import PresetConfig
from retrieval.search.outcome import SearchOutcome

#: Stages that fit beside each other.
_MAX_BESIDE: Final = 18


@dataclass(frozen=True, slots=True)
class Setting:
    """A number that a stage ran with, and its declaration."""

    key: str
    value: float
    unit: str
    help: str


@dataclass(frozen=True, slots=True)
class FunnelCell:
    """One stage."""

    stage: str
    label: str
    purpose: str
    #: What it left, in figures; empty for a stage that leaves nothing to count.
    count: str
    unit: str
    dropped: int
    milliseconds: str
    #: Percent of the slowest stage's time.
    bar: float
    #: Runs beside the cell before or after it.
    parallel: bool
    degraded: bool
    notes: tuple[Note, ...]
    settings: tuple[Setting, ...]
    drops: DropList
    events: tuple[EventLine, ...] = ()


@dataclass(frozen=True, slots=True)
class Funnel:
    """All stages and the clock."""

    cells: tuple[FunnelCell, ...]
    #: Each stage's time on the scale of the deadline.
    clock: tuple[BarPart, ...]
    milliseconds: str
    deadline_ms: int

    @property
    def is_long(self) -> bool:
        """Whether there are more stages than fit beside each other."""
        return len(self.cells) > _MAX_BESIDE


def funnel(outcome: SearchOutcome, labels: ChunkLabels) -> Funnel:
    """Return the funnel of a search. Legs stand in the place of the stage that ran them."""
    spans = list(leaf_spans(outcome.trace))
    slowest = max((span.seconds for span in spans), default=0.0)
    top = {span.stage: span.seconds for span in outcome.trace if not span.parent}
    deadline_ms = outcome.config.deadline_ms
    return Funnel(
        cells=tuple(_cell(span, outcome, labels, slowest) for span in spans),
        clock=stacked(top, whole=deadline_ms / 1000),
        milliseconds=milliseconds(outcome.seconds),
        deadline_ms=deadline_ms,
    )


def leaf_spans(trace: Iterable[Span]) -> Iterator[Span]:
    """Yield the spans that did the work: children in the place of their parent."""
    spans = tuple(trace)
    parents = {span.parent for span in spans}
    return (span for span in spans if span.stage not in parents)


def removed(span: Span) -> int:
    """Return how many hits a stage removed: its drops, or what it lost without naming it."""
    return max(len(span.drops), span.hits_in - span.hits_out, 0)


def _cell(span: Span, outcome: SearchOutcome, labels: ChunkLabels, slowest: float) -> FunnelCell:
    count, unit = _left(span, outcome)
    return FunnelCell(
        stage=span.stage,
        label=wording.stage_label(span.stage),
        purpose=wording.stage_purpose(span.stage),
        count=count,
        unit=unit,
        dropped=removed(span),
        milliseconds=milliseconds(span.seconds),
        bar=round(percent(span.seconds, slowest), 1),
        parallel=bool(span.parent),
        degraded=any(note.degraded for note in span.notes),
        notes=span.notes,
        settings=settings_of(span.stage, outcome.config),
        drops=drop_list(span.drops, labels),
        events=event_lines(span.events, outcome.state.scope),
    )


def _left(span: Span, outcome: SearchOutcome) -> tuple[str, str]:
    """Return what a stage left, in figures, and what is counted."""
    about = wording.about(span.stage)
    if about is None:
        return f"{span.hits_out:,}", "hits"
    count = about.left(outcome.state) if about.left else span.hits_out if about.unit else None
    return ("", "") if count is None else (f"{count:,}", about.unit)


def settings_of(stage: str, config: PresetConfig) -> tuple[Setting, ...]:
    """Return the numbers that a stage ran with, by their keys in the configuration."""
    about = wording.about(stage)
    section = about.section if about else ""
    if section not in {item.name for item in fields(config)}:
        return ()
    part: Tunables = getattr(config, section)
    return tuple(
        Setting(f"{section}.{facts.name}", getattr(part, facts.name), facts.unit, facts.help)
        for facts in part.declared()
        if f"{section}.{facts.name}" not in config.unused
    )
