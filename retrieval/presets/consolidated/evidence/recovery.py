"""Stage B: which source types a pool lacks, looking for each once, and adding what was found."""

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import StrEnum
from threading import Lock
from typing import Final

from retrieval.engine.state import RequestFilter
from retrieval.engine.types import ChunkId, Hit, Ranking
from retrieval.presets.consolidated.evidence.sections import Section

#: The signal of a hit that Stage B added.
RECOVERED: Final = "recovered"
#: The signal of a hit that lies outside of what the request left of its scope.
BEYOND_FILTER: Final = "beyond_filter"
SOURCE_RESULT: Final = "source_recovery_result"
#: Chunks that are recovered for each one that a pool lacks: the reranker is to have a choice.
_CHOICE: Final = 2
_EVERYTHING: Final = RequestFilter()

#: Compartment, source type, and what a search leaves of its scope.
_Key = tuple[str, str, RequestFilter]


@dataclass(frozen=True, slots=True)
class Missing:
    """A required source type that a pool has too little of."""

    source_type: str
    #: Chunks of it in the pool, fewer than the floor.
    found: int
    floor: int

    @property
    def is_absent(self) -> bool:
        """Whether the pool has none of it."""
        return self.found == 0


def wanted(missing: Missing, section: Section, *, limit: int) -> int:
    """Return how many chunks are recovered of a missing type, at most `most`.

    Twice as many as its quantity floor lacks, and no fewer than its survivor floor needs beside those of the pool.
    """
    survivors = section.survivor_floor(missing.source_type) - missing.found
    return min(limit, max(_CHOICE * (missing.floor - missing.found), survivors))


def missing_types(section: Section, counts: Mapping[str, int]) -> tuple[Missing, ...]:
    """Return what a pool lacks of what its section requires, in the section's order.

    `counts` are the pool's chunks by canonical source type. Nothing is missing from an empty pool: that one is the
    cascade's. Optional types are never missing; a section cannot require what is never recovered.
    """
    if not any(counts.values()):
        return ()
    found = (Missing(it, counts.get(it, 0), section.quantity_floor(it)) for it in section.required)
    return tuple(it for it in found if it.found < it.floor)


class Diagnosis(StrEnum):
    """What looking for a source type in a compartment came to."""

    RECOVERED = "recovered"
    #: Looked, and there is none.
    ABSENT = "absent"
    #: Another section looked and there is none; nobody looked again.
    KNOWN_ABSENT = "known_absent"
    #: Another section was still looking when the time was up.
    STILL_LOOKING = "still_looking"
    #: The looking took too long, or the store failed.
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceResult:
    """What looking for one source type in one compartment came to."""

    source_type: str
    #: The compartment's connections that were looked in. Its name is not told, since an event outlasts a grant.
    connections: tuple[int, ...]
    #: Chunks of it that the compartment gave, those of the pool among them.
    found: int
    diagnosis: Diagnosis
    seconds: float
    #: Class of the error that ended it; empty for none.
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
    """Remembers which source types a compartment does not have, so that it is asked once and not once per section.

    It lives as long as one run over a section set: what it knows holds for one scope and must reach no other, and for
    what a search leaves of that (`kept`). Sections that run side by side wait for the first one's diagnosis. Safe to
    share between threads.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._looking: dict[_Key, Lock] = {}
        self._absent: set[_Key] = set()

    def is_absent(self, compartment: str, source_type: str, kept: RequestFilter = _EVERYTHING) -> bool:
        """Return whether the compartment is known to have no chunk of that type."""
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
        """Return what the probe finds, with the diagnosis; a type that is known to be absent is not probed for.

        A probe that finds something is the section's own and the next section runs its own too; one that raises tells
        nothing.
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
        """Hold the key's turn, waiting for who has it; yield whether it came in time."""
        with self._lock:
            turn = self._looking.setdefault(key, Lock())
        is_mine = turn.acquire(timeout=max(0.0, wait_seconds))
        try:
            yield is_mine
        finally:
            if is_mine:
                turn.release()


def merged(pool: Ranking, recovered: Ranking) -> Ranking:
    """Return the pool with the recovered hits that it lacks behind it, in order, marked by the signal "recovered"."""
    known = {hit.chunk_id for hit in pool}
    new = {hit.chunk_id: hit for hit in reversed(recovered) if hit.chunk_id not in known}
    added = [new.pop(hit.chunk_id) for hit in recovered if hit.chunk_id in new]
    return (*pool, *(replace(hit, signals={**hit.signals, RECOVERED: 1.0}) for hit in added))


def marked_beyond(hits: Ranking, kept: Collection[ChunkId]) -> Ranking:
    """Return the hits, those that a request's filter does not keep marked by the signal "beyond_filter"."""
    return tuple(hit if hit.chunk_id in kept else hit.with_signals({**hit.signals, BEYOND_FILTER: 1.0}) for hit in hits)


def is_beyond_filter(hit: Hit) -> bool:
    """Return whether the hit lies outside of what the request left of its scope."""
    return hit.signals.get(BEYOND_FILTER, 0.0) > 0


def is_recovered(hit: Hit) -> bool:
    """Return whether Stage B added the hit."""
    return hit.signals.get(RECOVERED, 0.0) > 0
