"""Load: the connections at work against the ladder's rungs, slots, what was turned away, and memory."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from explorer import wording
from explorer.components.bars import percent
from retrieval.encoders.admission import IngestLoad
from retrieval.engine.admission import Load
from retrieval.engine.admission_ladder import Ladder, LadderConfig, PoolConfig, Refusal, Rung

_RUNGS: Final = {
    Rung.CALM: "calm",
    Rung.TRIAGE: "searches with hardly any time are turned away",
    Rung.HARD_REJECT: "searches are turned away",
    Rung.SHORT_BUDGET: "all with little time are turned away",
    Rung.RECOVERY_SKIP: "no more recovery for searches that were broken off",
    Rung.FULL: "full",
}
_REASONS: Final = {
    Refusal.POOL_FULL: "no connection left",
    Refusal.HARD_REJECT: "too few connections left",
    Refusal.SHORT_BUDGET: "too little time for the connections left",
    Refusal.TRIAGE: "hardly any time",
    Refusal.QUEUE: "the wait would be too long",
    Refusal.BUDGET_OVER: "the wait was too long",
}
#: Share of the memory from which on ingests go with the fewest calls.
_TIGHT: Final = 0.9
_GIB: Final = 2**30


@dataclass(frozen=True, slots=True)
class Mark:
    """A rung on the meter."""

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
    """What the health page shows of the load."""

    #: Connections at work in percent of those that there are, and the tone of their bar.
    share: float
    tone: str
    summary: str
    marks: tuple[Mark, ...]
    figures: tuple[Figure, ...]
    #: How many queries were turned away, by a reason in words; those that were none are left out.
    refusals: tuple[Figure, ...]


def load_panel(load: Load, ingest: IngestLoad, *, at_the_door: int = 0) -> LoadPanel:
    """Return the panel of these figures; `at_the_door` counts requests of programs that were refused unread."""
    by_reason = [(it.value, _REASONS[it], load.refused.get(it, 0)) for it in Refusal]
    by_reason.append(("door", "too many requests unanswered", at_the_door))
    return LoadPanel(
        share=round(percent(load.active, load.connections), 2),
        tone=load_tone(load),
        summary=f"{load.active} of {wording.counted(load.connections, 'connection')} at work: {_RUNGS[load.rung]}.",
        marks=tuple(_marks(load)),
        figures=tuple(_figures(load, ingest)),
        refusals=tuple(Figure(key, words.capitalize(), f"{count:,}") for key, words, count in by_reason if count),
    )


def load_tone(load: Load) -> str:
    """Return "good" while nobody is turned away for the connections, "bad" for a full pool, else "warn"."""
    if load.rung is Rung.FULL:
        return "bad"
    return "good" if load.rung is Rung.CALM else "warn"


def load_words(load: Load) -> str:
    """Return the load in a sentence or two."""
    pool = f"{load.active} of {load.connections} connections at work, {_RUNGS[load.rung]}"
    slots = f"{load.held} of {load.slots} search slots held, {load.waiting} waiting."
    cut = f" The server has no room for the {load.wished} connections that are set." if is_pool_cut(load) else ""
    return f"{pool}; {slots}{cut}"


def is_pool_cut(load: Load) -> bool:
    """Return whether the server takes fewer connections than are wished for."""
    return load.connections < load.wished


def ingest_words(load: IngestLoad) -> str:
    """Return how many embedding calls may go side by side, and why."""
    said = f"A sync may have {load.allowed} of {load.configured} embedding calls at work"
    return f"{said}; {_memory(load)}." if load.memory.limit else f"{said}; the memory is not known."


def is_memory_tight(load: IngestLoad) -> bool:
    """Return whether memory is so full that ingests go with the fewest calls."""
    return load.memory.pressure >= _TIGHT


def _memory(load: IngestLoad) -> str:
    memory = load.memory
    sizes = f"{memory.in_use / _GIB:.1f} of {memory.limit / _GIB:.1f} GiB"
    return f"{memory.pressure:.0%} of memory in use ({sizes})".replace("%", " %", 1)


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
    yield Figure("slots", "Search slots held", f"{load.held} of {load.slots}")
    yield Figure("waiting", "Searches waiting", str(load.waiting))
    yield Figure("recovery", "Recovery slots held", f"{load.recovery_held} of {load.recovery_slots}")
    yield Figure("admitted", "Begun", f"{load.admitted:,}")
    yield Figure("refused", "Turned away", f"{sum(load.refused.values()):,}")
    yield Figure("skipped", "Recovery skipped", f"{load.recovery_skipped:,}")
    yield Figure("longest", "Longest wait", f"{load.max_wait_seconds:.1f} s")
    yield Figure("ingest", "Embedding calls", f"{ingest.allowed} of {ingest.configured}")
    yield Figure("memory", "Memory in use", f"{ingest.memory.pressure:.0%}".replace("%", " %"))
