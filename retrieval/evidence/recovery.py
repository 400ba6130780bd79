"""Stage B: which source types a pool lacks, looking for each once, and adding what was found."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import StrEnum
from threading import Lock

from retrieval.evidence.sections import Section
from retrieval.types import Hit, Ranking

#: The signal of a hit that Stage B added.
RECOVERED = "recovered"


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


class Diagnoses:
    """Remembers which source types a compartment does not have, so that it is asked once and not once per section.

    It lives as long as one run over a section set: what it knows holds for one scope and must reach no other. Sections
    that run side by side wait for the first one's diagnosis. Safe to share between threads.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._looking: dict[tuple[str, str], Lock] = {}
        self._absent: set[tuple[str, str]] = set()

    def is_absent(self, compartment: str, source_type: str) -> bool:
        """Return whether the compartment is known to have no chunk of that type."""
        with self._lock:
            return (compartment, source_type) in self._absent

    def look(
        self, compartment: str, source_type: str, probe: Callable[[], Ranking], *, wait_seconds: float
    ) -> tuple[Ranking, Diagnosis]:
        """Return what the probe finds, with the diagnosis; a type that is known to be absent is not probed for.

        A probe that finds something is the section's own and the next section runs its own too; one that raises tells
        nothing.
        """
        key = (compartment, source_type)
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
    def _turn(self, key: tuple[str, str], wait_seconds: float) -> Iterator[bool]:
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


def is_recovered(hit: Hit) -> bool:
    """Return whether Stage B added the hit."""
    return hit.signals.get(RECOVERED, 0.0) > 0
