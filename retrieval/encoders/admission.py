"""Limits on the concurrent embedding calls of ingests: fewer as memory fills up, and never all of the process's.

Queries are not limited: they are embedded at once during an ingest too.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from retrieval.engine.slots import Slots

INGEST_SLOTS: Final = 16  #: Maximum number of concurrent calls of all ingests of a process.
MIN_CALLS: Final = 2  #: Concurrent calls that an ingest always gets, so that it makes progress with little memory.
#: Share of memory in use up to which calls are not limited, and from which only MIN_CALLS are allowed.
_UNLIMITED_BELOW: Final = 0.6
_MIN_FROM: Final = 0.9
_STATM: Final = Path("/proc/self/statm")
_MEMINFO: Final = Path("/proc/meminfo")
_GROUP_LIMITS: Final = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))
_GROUP_STATS: Final = (Path("/sys/fs/cgroup/memory.stat"), Path("/sys/fs/cgroup/memory/memory.stat"))
#: Fields of a group's memory that cannot be reclaimed, in both versions of its file.
_UNRECLAIMABLE: Final = (frozenset({"anon", "shmem"}), frozenset({"total_rss", "total_shmem"}))
_MACHINE_FIELDS: Final = 2

_slots = Slots(INGEST_SLOTS)


@dataclass(frozen=True, slots=True)
class Memory:
    """Use and limit of a process's memory, in bytes."""

    used: int
    limit: int  #: 0 if unknown.
    together: int = 0  #: Unreclaimable memory of all processes under that limit; 0 if unknown.

    @property
    def in_use(self) -> int:
        """The use that counts against the limit."""
        return max(self.used, self.together)

    @property
    def pressure(self) -> float:
        """Share of the limit in use, 0 without a limit."""
        return self.in_use / self.limit if self.limit else 0.0


@dataclass(frozen=True, slots=True)
class IngestLoad:
    """Concurrent calls of ingests in this process, and their limits by memory."""

    slots: int
    held: int
    waiting: int
    configured: int  #: Concurrent embedding calls per sync: as configured, and as memory allows now.
    allowed: int
    memory: Memory


def calls_under(pressure: float, *, configured: int) -> int:
    """Return the allowed number of concurrent calls: the configured number up to 60 % of memory, 2 from 90 %.

    In between it falls linearly towards 0, rounded down, and never below 2.
    """
    share = (_MIN_FROM - pressure) / (_MIN_FROM - _UNLIMITED_BELOW)
    return max(MIN_CALLS, min(configured, int(configured * min(share, 1.0) + 1e-9), INGEST_SLOTS))


def effective_calls(configured: int) -> int:
    """Return the number of concurrent calls that an ingest may make now, 2 to 16."""
    return calls_under(memory().pressure, configured=configured)


@contextmanager
def ingest_slot() -> Iterator[None]:
    """Use one of the process's slots; wait until one is free."""
    with _slots.one():
        yield


def ingest_load(configured: int) -> IngestLoad:
    """Return the current load, for a configured number of calls."""
    now = memory()
    allowed = calls_under(now.pressure, configured=configured)
    return IngestLoad(_slots.count, _slots.held, _slots.waiting, configured, allowed, now)


def memory() -> Memory:
    """Return this process's resident memory, with limit and use of its control group or machine: the lower limit."""
    used = 0
    with suppress(OSError, ValueError, IndexError):
        used = int(_STATM.read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")
    groups = (
        (_group_limit(limit), _group_use(stats, fields))
        for limit, stats, fields in zip(_GROUP_LIMITS, _GROUP_STATS, _UNRECLAIMABLE, strict=True)
    )
    limit, together = min((it for it in (_machine(), *groups) if it[0]), default=(0, 0))
    return Memory(used, limit, together)


def _machine() -> tuple[int, int]:
    wanted = ("MemTotal:", "MemAvailable:")
    with suppress(OSError, ValueError, IndexError):
        lines = _MEMINFO.read_text(encoding="ascii").splitlines()
        found = [int(line.split()[1]) * 1024 for line in lines if line.startswith(wanted)]
        return found[0], found[0] - found[1] if len(found) == _MACHINE_FIELDS else 0
    return 0, 0


def _group_use(path: Path, fields: frozenset[str]) -> int:
    """Return the sum of these fields of a control group's statistics; 0 without the file."""
    with suppress(OSError, ValueError):
        rows = (line.split() for line in path.read_text(encoding="ascii").splitlines())
        return sum(int(row[1]) for row in rows if row[0] in fields)
    return 0


def _group_limit(path: Path) -> int:
    """Return a control group's limit, 0 without one: its file contains "max" or is missing."""
    with suppress(OSError, ValueError):
        return int(path.read_text(encoding="ascii"))
    return 0
