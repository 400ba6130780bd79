"""How many embedding calls an ingest may have at work: fewer as memory fills up, and never all of the process's.

Queries ask for nothing here. They are embedded at once, whatever an ingest does.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import BoundedSemaphore
from typing import Final

#: Calls that all ingests of a process together have at work, at most.
INGEST_SLOTS: Final = 16
#: Calls that an ingest may have at work however little memory is left: with fewer it would stand still.
FEWEST_CALLS: Final = 2
#: Share of the memory in use up to which nothing is held back, and from which on only the fewest calls go.
_EASY: Final = 0.6
_FULL: Final = 0.9
_STATM: Final = Path("/proc/self/statm")
_MEMINFO: Final = Path("/proc/meminfo")
_GROUP_LIMITS: Final = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))

_slots = BoundedSemaphore(INGEST_SLOTS)


@dataclass(frozen=True, slots=True)
class Memory:
    """What a process uses, and what it may use, in bytes."""

    used: int
    #: 0 where nothing is known.
    limit: int

    @property
    def pressure(self) -> float:
        """Share of the limit in use, 0 where there is none."""
        return self.used / self.limit if self.limit else 0.0


def calls_under(pressure: float, *, configured: int) -> int:
    """Return how many calls may be at work: the configured number up to 60 % of memory, 2 from 90 % on.

    Between them it falls in a straight line to none, rounded down, and never below 2.
    """
    share = (_FULL - pressure) / (_FULL - _EASY)
    return max(FEWEST_CALLS, min(configured, int(configured * min(share, 1.0) + 1e-9), INGEST_SLOTS))


def effective_calls(configured: int) -> int:
    """Return how many calls an ingest may have at work now, 2 to 16."""
    return calls_under(memory().pressure, configured=configured)


@contextmanager
def ingest_slot() -> Iterator[None]:
    """Hold one of the process's slots, waiting for one while all are taken."""
    with _slots:
        yield


def memory() -> Memory:
    """Return this process's resident memory and the least of its group's limit and the machine's memory."""
    used = 0
    with suppress(OSError, ValueError, IndexError):
        used = int(_STATM.read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")
    limits = [_machine_bytes(), *(_group_limit(path) for path in _GROUP_LIMITS)]
    return Memory(used, min((limit for limit in limits if limit), default=0))


def _machine_bytes() -> int:
    with suppress(OSError, ValueError, IndexError):
        for line in _MEMINFO.read_text(encoding="ascii").splitlines():
            if line.startswith("MemTotal:"):
                return int(line.split()[1]) * 1024
    return 0


def _group_limit(path: Path) -> int:
    """Return a control group's limit, 0 for none: its file says "max", or is not there."""
    with suppress(OSError, ValueError):
        return int(path.read_text(encoding="ascii"))
    return 0
