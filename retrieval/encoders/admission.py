"""How many embedding calls an ingest may have at work: fewer as memory fills up, and never all of the process's.

Queries ask for nothing here. They are embedded at once, whatever an ingest does.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from retrieval.engine.slots import Slots

#: Calls that all ingests of a process together have at work, at most.
INGEST_SLOTS: Final = 16
#: Calls that an ingest may have at work however little memory is left: with fewer it would stand still.
MIN_CALLS: Final = 2
#: Share of the memory in use up to which nothing is held back, and from which on only the fewest calls go.
_EASY: Final = 0.6
_FULL: Final = 0.9
_STATM: Final = Path("/proc/self/statm")
_MEMINFO: Final = Path("/proc/meminfo")
_GROUP_LIMITS: Final = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))
_GROUP_STATS: Final = (Path("/sys/fs/cgroup/memory.stat"), Path("/sys/fs/cgroup/memory/memory.stat"))
#: What of a group's memory cannot be given up, by the names of both versions of its file.
_KEPT: Final = (frozenset({"anon", "shmem"}), frozenset({"total_rss", "total_shmem"}))
_MACHINE_FIELDS: Final = 2

_slots = Slots(INGEST_SLOTS)


@dataclass(frozen=True, slots=True)
class Memory:
    """What a process uses, and what it may use, in bytes."""

    used: int
    #: 0 where nothing is known.
    limit: int
    #: What all processes under that limit use together, without what the system would give up; 0 where not known.
    together: int = 0

    @property
    def in_use(self) -> int:
        """What counts against the limit."""
        return max(self.used, self.together)

    @property
    def pressure(self) -> float:
        """Share of the limit in use, 0 where there is none."""
        return self.in_use / self.limit if self.limit else 0.0


@dataclass(frozen=True, slots=True)
class IngestLoad:
    """What ingests have at work in this process, and what memory lets them have on this machine."""

    slots: int
    held: int
    waiting: int
    #: Embedding calls that one sync may have at work, as configured and as memory allows now.
    configured: int
    allowed: int
    memory: Memory


def calls_under(pressure: float, *, configured: int) -> int:
    """Return how many calls may be at work: the configured number up to 60 % of memory, 2 from 90 % on.

    Between them it falls in a straight line to none, rounded down, and never below 2.
    """
    share = (_FULL - pressure) / (_FULL - _EASY)
    return max(MIN_CALLS, min(configured, int(configured * min(share, 1.0) + 1e-9), INGEST_SLOTS))


def effective_calls(configured: int) -> int:
    """Return how many calls an ingest may have at work now, 2 to 16."""
    return calls_under(memory().pressure, configured=configured)


@contextmanager
def ingest_slot() -> Iterator[None]:
    """Hold one of the process's slots, waiting for one while all are taken."""
    with _slots.one():
        yield


def ingest_load(configured: int) -> IngestLoad:
    """Return the figures of this moment, where so many calls are configured."""
    now = memory()
    allowed = calls_under(now.pressure, configured=configured)
    return IngestLoad(_slots.count, _slots.held, _slots.waiting, configured, allowed, now)


def memory() -> Memory:
    """Return this process's resident memory, and the least of its group's limit and the machine's with its use."""
    used = 0
    with suppress(OSError, ValueError, IndexError):
        used = int(_STATM.read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")
    groups = (
        (_group_limit(limit), _group_use(stats, kept))
        for limit, stats, kept in zip(_GROUP_LIMITS, _GROUP_STATS, _KEPT, strict=True)
    )
    limit, together = min((it for it in (_machine(), *groups) if it[0]), default=(0, 0))
    return Memory(used, limit, together)


def _machine() -> tuple[int, int]:
    """Return the machine's memory and what of it is in use."""
    wanted = ("MemTotal:", "MemAvailable:")
    with suppress(OSError, ValueError, IndexError):
        lines = _MEMINFO.read_text(encoding="ascii").splitlines()
        found = [int(line.split()[1]) * 1024 for line in lines if line.startswith(wanted)]
        return found[0], found[0] - found[1] if len(found) == _MACHINE_FIELDS else 0
    return 0, 0


def _group_use(path: Path, kept: frozenset[str]) -> int:
    """Return what a control group's processes use and cannot give up; 0 where its file is not there."""
    with suppress(OSError, ValueError):
        rows = (line.split() for line in path.read_text(encoding="ascii").splitlines())
        return sum(int(row[1]) for row in rows if row[0] in kept)
    return 0


def _group_limit(path: Path) -> int:
    """Return a control group's limit, 0 for none: its file says "max", or is not there."""
    with suppress(OSError, ValueError):
        return int(path.read_text(encoding="ascii"))
    return 0
