"""Load: connections in use with the thresholds of admission, slots, rejected searches, and memory."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from explorer import wording
from explorer.components.bars import percent
from retrieval.encoders.admission import IngestLoad
from retrieval.engine.admission import Load
from retrieval.engine.admission_ladder import Ladder, LadderConfig, PoolConfig, Refusal, Rung

_RUNGS: Final = {
    Rung.CALM: "normal",
    Rung.TRIAGE: "searches with very little time left are rejected",
    Rung.HARD_REJECT: "new searches are rejected",
    Rung.SHORT_BUDGET: "all searches with little time left are rejected",
    Rung.RECOVERY_SKIP: "recovery of aborted searches is skipped",
    Rung.FULL: "full",
}
_REASONS: Final = {
    Refusal.POOL_FULL: "no free connection",
    Refusal.HARD_REJECT: "too few free connections",
    Refusal.SHORT_BUDGET: "too little time for the free connections",
    Refusal.TRIAGE: "very little time left",
    Refusal.QUEUE: "expected wait too long",
    Refusal.BUDGET_OVER: "wait too long",
}
#: Share of memory in use from which ingestion runs with the minimum of calls.
_TIGHT: Final = 0.9
_GIB: Final = 2**30


@dataclass(frozen=True, slots=True)
class Mark:
    """A threshold on the meter."""

    x: float
    connections: int
    meaning: str


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure with its name."""

    key: str
    label: str
    value: str


@dataclass(frozen=True, slots=True)
class LoadPanel:
    """The load on the health page."""

    #: Connections in use in percent, and the tone of the bar.
    share: float
    tone: str
    summary: str
    marks: tuple[Mark, ...]
    figures: tuple[Figure, ...]
    #: Rejected queries by reason, without reasons that did not occur.
    refusals: tuple[Figure, ...]


def load_panel(load: Load, ingest: IngestLoad, *, refused_early: int = 0) -> LoadPanel:
    """Return the panel of these figures; `refused_early` counts API requests that were refused unread."""
    by_reason = [(it.value, _REASONS[it], load.refused.get(it, 0)) for it in Refusal]
    by_reason.append(("door", "too many open requests", refused_early))
    return LoadPanel(
        share=round(percent(load.active, load.connections), 2),
        tone=load_tone(load),
        summary=f"{load.active} of {wording.counted(load.connections, 'connection')} in use: {_RUNGS[load.rung]}.",
        marks=tuple(_marks(load)),
        figures=tuple(_figures(load, ingest)),
        refusals=tuple(Figure(key, words.capitalize(), f"{count:,}") for key, words, count in by_reason if count),
    )


def load_tone(load: Load) -> str:
    """Return "good" below all thresholds, "bad" for a full pool, else "warn"."""
    if load.rung is Rung.FULL:
        return "bad"
    return "good" if load.rung is Rung.CALM else "warn"


def load_words(load: Load) -> str:
    """Return the load as text."""
    pool = f"{load.active} of {load.connections} connections in use, {_RUNGS[load.rung]}"
    slots = f"{load.held} of {load.slots} search slots in use, {load.waiting} waiting."
    cut = f" The server supports fewer than the configured {load.wished} connections." if is_pool_cut(load) else ""
    return f"{pool}; {slots}{cut}"


def is_pool_cut(load: Load) -> bool:
    """Return whether the server supports fewer connections than configured."""
    return load.connections < load.wished


def ingest_words(load: IngestLoad) -> str:
    """Return the limit of parallel embedding calls, and the memory in use."""
    calls = f"A sync may run {load.allowed} of {load.configured} embedding calls in parallel"
    memory = load.memory
    if not memory.limit:
        return f"{calls}; memory usage unknown."
    sizes = f"{memory.in_use / _GIB:.1f} of {memory.limit / _GIB:.1f} GiB"
    return f"{calls}; {memory.pressure * 100:.0f} % of memory in use ({sizes})."


def is_memory_tight(load: IngestLoad) -> bool:
    """Return whether ingestion runs with the minimum of calls because of memory."""
    return load.memory.pressure >= _TIGHT


def _marks(load: Load) -> Iterator[Mark]:
    config = LadderConfig()
    ladder = Ladder(PoolConfig(), config, load.connections)
    shares = (
        (config.triage, Rung.TRIAGE),
        (config.hard_reject, Rung.HARD_REJECT),
        (config.short_budget_reject, Rung.SHORT_BUDGET),
        (config.recovery_skip, Rung.RECOVERY_SKIP),
    )
    for share, rung in shares:
        connections = ladder.rung(share)
        yield Mark(round(percent(connections, load.connections), 2), connections, _RUNGS[rung])


def _figures(load: Load, ingest: IngestLoad) -> Iterator[Figure]:
    yield Figure("slots", "Search slots in use", f"{load.held} of {load.slots}")
    yield Figure("waiting", "Searches waiting", str(load.waiting))
    yield Figure("recovery", "Recovery slots in use", f"{load.recovery_held} of {load.recovery_slots}")
    yield Figure("admitted", "Admitted", f"{load.admitted:,}")
    yield Figure("refused", "Rejected", f"{sum(load.refused.values()):,}")
    yield Figure("skipped", "Recovery skipped", f"{load.recovery_skipped:,}")
    yield Figure("longest", "Maximum wait", f"{load.max_wait_seconds:.1f} s")
    yield Figure("ingest", "Embedding calls", f"{ingest.allowed} of {ingest.configured}")
    yield Figure("memory", "Memory in use", f"{ingest.memory.pressure * 100:.0f} %")
