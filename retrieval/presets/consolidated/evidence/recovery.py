"""Recovering missing source types: what a pool lacks, one search for each, the merged hits, and the coverage."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import StrEnum
from threading import Lock
from typing import Final, Self

from retrieval.engine.state import RequestFilter, Span
from retrieval.engine.types import ChunkId, Hit, Ranking
from retrieval.presets.consolidated.evidence.cascade import EXHAUSTED, TIER_RESULT
from retrieval.presets.consolidated.evidence.sections import Section, SectionSet

RECOVERED: Final = "recovered"
BEYOND_FILTER: Final = "beyond_filter"  #: The signal of a hit outside the request's filter.
SOURCE_RESULT: Final = "source_recovery_result"
_CHOICE: Final = 2  #: Recovered chunks for each missing one, so that the reranker has a choice.
_EVERYTHING: Final = RequestFilter()

_Key = tuple[str, str, RequestFilter]
_STAGE_B: Final = "sources"  #: The stage that recovers missing source types.


@dataclass(frozen=True, slots=True)
class Missing:
    """A required source type with too few chunks in the pool."""

    source_type: str
    found: int  #: Chunks of it in the pool, fewer than the floor.
    floor: int

    @property
    def is_absent(self) -> bool:
        """Whether the pool has none of it."""
        return self.found == 0


def wanted(missing: Missing, section: Section, *, limit: int) -> int:
    """Return how many chunks of a missing type to recover, at most `limit`.

    Twice the number missing to its quantity floor, and at least the number missing to its survivor floor.
    """
    survivors = section.survivor_floor(missing.source_type) - missing.found
    return min(limit, max(_CHOICE * (missing.floor - missing.found), survivors))


def missing_types(section: Section, counts: Mapping[str, int]) -> tuple[Missing, ...]:
    """Return the required types that a pool lacks, in the section's order.

    `counts` are the pool's chunks by canonical source type. Nothing is missing from an empty pool, which the cascade
    handles. Optional types are never missing.
    """
    if not any(counts.values()):
        return ()
    found = (Missing(it, counts.get(it, 0), section.quantity_floor(it)) for it in section.required)
    return tuple(it for it in found if it.found < it.floor)


class Diagnosis(StrEnum):
    """The result of the search for a source type in a compartment."""

    RECOVERED = "recovered"
    ABSENT = "absent"
    KNOWN_ABSENT = "known_absent"
    STILL_LOOKING = "still_looking"  #: Another section was still searching when the time was up.
    FAILED = "failed"  #: The search timed out, or the store failed.


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceResult:
    """The search for one source type in one compartment."""

    source_type: str
    #: The searched connections of the compartment. Its name is left out, since events outlive grants.
    connections: tuple[int, ...]
    found: int
    diagnosis: Diagnosis
    seconds: float
    error: str = ""

    def event(self) -> dict[str, object]:
        """Return it as a structured event."""
        return {
            "event": SOURCE_RESULT,
            "source_type": self.source_type,
            "connections": list(self.connections),
            "found": self.found,
            "diagnosis": str(self.diagnosis),
            "level": "warning" if self.diagnosis in {Diagnosis.FAILED, Diagnosis.STILL_LOOKING} else "info",
            "ms": round(self.seconds * 1000, 1),
            "error": self.error,
        }


class Diagnoses:
    """Caches absent source types of compartments, so that each is searched once and not once per section.

    It is valid for one run over a section set: for one scope, which no other may see, and one filter (`kept`).
    Concurrent sections wait for the first one's diagnosis. Thread-safe.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._looking: dict[_Key, Lock] = {}
        self._absent: set[_Key] = set()

    def __reduce__(self) -> tuple[type[Self], tuple[()]]:
        """Leave the locks behind: a copy for another process begins empty."""
        return type(self), ()

    def is_absent(self, compartment: str, source_type: str, kept: RequestFilter = _EVERYTHING) -> bool:
        """Return whether the compartment certainly has no chunk of that type."""
        with self._lock:
            return (compartment, source_type, kept) in self._absent

    def look(
        self,
        compartment: str,
        source_type: str,
        probe: Callable[[], Ranking],
        *,
        wait_seconds: float,
        kept: RequestFilter = _EVERYTHING,
    ) -> tuple[Ranking, Diagnosis]:
        """Return the hits of the probe with the diagnosis; the probe is skipped for a type known to be absent.

        Hits are not shared: the next section runs its own probe. An error is not cached.
        """
        key = (compartment, source_type, kept)
        with self._turn(key, wait_seconds) as is_mine:
            if self.is_absent(*key):
                return (), Diagnosis.KNOWN_ABSENT
            if not is_mine:
                return (), Diagnosis.STILL_LOOKING
            if found := probe():
                return found, Diagnosis.RECOVERED
            with self._lock:
                self._absent.add(key)
            return (), Diagnosis.ABSENT

    @contextmanager
    def _turn(self, key: _Key, wait_seconds: float) -> Iterator[bool]:
        with self._lock:
            turn = self._looking.setdefault(key, Lock())
        is_mine = turn.acquire(timeout=max(0.0, wait_seconds))
        try:
            yield is_mine
        finally:
            if is_mine:
                turn.release()


def merged(pool: Ranking, recovered: Ranking) -> Ranking:
    """Return the pool followed by new recovered hits, marked by the signal "recovered"."""
    known = {hit.chunk_id for hit in pool}
    new = {hit.chunk_id: hit for hit in reversed(recovered) if hit.chunk_id not in known}
    added = [new.pop(hit.chunk_id) for hit in recovered if hit.chunk_id in new]
    return (*pool, *(replace(hit, signals={**hit.signals, RECOVERED: 1.0}) for hit in added))


def marked_beyond(hits: Ranking, kept: Collection[ChunkId]) -> Ranking:
    """Return the hits; those not in `kept` get the signal "beyond_filter"."""
    return tuple(hit if hit.chunk_id in kept else hit.with_signals({**hit.signals, BEYOND_FILTER: 1.0}) for hit in hits)


def is_beyond_filter(hit: Hit) -> bool:
    """Return whether the hit lies outside the request's filter."""
    return hit.signals.get(BEYOND_FILTER, 0.0) > 0


def is_recovered(hit: Hit) -> bool:
    """Return whether the hit was recovered for its source type."""
    return hit.signals.get(RECOVERED, 0.0) > 0


_CONCLUSIVE: Final = frozenset({Diagnosis.ABSENT, Diagnosis.KNOWN_ABSENT})


class Presence(StrEnum):
    """The coverage of a source type in a section."""

    FOUND = "found"  #: Required, with enough chunks.
    RECOVERED = "recovered"  #: Required, with chunks that were recovered.
    THIN = "thin"  #: Required, with fewer chunks than the section needs.
    MISSING = "missing"  #: Required, searched for and not found.
    NOT_LOOKED_FOR = "not_looked_for"  #: Required, not found, and the search for it timed out or failed.
    OPTIONAL = "optional"  #: Not required, present.
    NONE = "none"  #: Not required, absent.


@dataclass(frozen=True, slots=True)
class Cell:
    """One source type in one section's evidence."""

    presence: Presence
    count: int = 0  #: Hits of the type, and how many of them were recovered.
    recovered: int = 0


def cells_of(section: Section, section_set: SectionSet, hits: Ranking, known: Collection[str]) -> dict[str, Cell]:
    """Return the coverage of every source type in a section: those of the set in order, then other found ones.

    `known` are the required types that are certainly absent if they were not found.
    """
    found = Counter(section_set.canonical(hit.chunk.source_type) for hit in hits)
    recovered = Counter(section_set.canonical(hit.chunk.source_type) for hit in hits if is_recovered(hit))

    def presence(name: str) -> Presence:
        if name not in section.required:
            return Presence.OPTIONAL if found[name] else Presence.NONE
        if not found[name]:
            return Presence.MISSING if name in known else Presence.NOT_LOOKED_FOR
        # The quantity floor applies to the pool; the final hits cannot exceed the section's limit.
        if found[name] < min(section.quantity_floor(name), section.keep):
            return Presence.THIN
        return Presence.RECOVERED if recovered[name] else Presence.FOUND

    names = dict.fromkeys((*section_set.precedence, *sorted(found)))
    return {name: Cell(presence(name), found[name], recovered[name]) for name in names}


def looked_for(section: Section, trace: Iterable[Span], events: Iterable[Mapping[str, object]]) -> frozenset[str]:
    """Return the required types that are certainly absent if they were not found, according to a search's trace.

    Those are the types without a failed recovery search; for an empty pool all, if every tier of the cascade ran.
    """
    happened = tuple(events)
    if any(
        span.stage == _STAGE_B
        and span.hits_in
        and not any(note.code.startswith("timed_out_in_") for note in span.notes)
        for span in trace
    ):
        probes = [event for event in happened if event.get("event") == SOURCE_RESULT]
        unknown = {it.get("source_type") for it in probes if it.get("diagnosis") not in _CONCLUSIVE}
        return frozenset(section.required) - {str(name) for name in unknown}
    is_exhausted = any(event.get("event") == EXHAUSTED for event in happened)
    failed = any(event.get("event") == TIER_RESULT and event.get("error") for event in happened)
    return frozenset(section.required) if is_exhausted and not failed else frozenset()
