"""How many searches are at work at once: few, and the others wait for their turn.

Side by side many would all be late, since each takes the processor from the others until its deadline has passed.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import BoundedSemaphore, Lock
from typing import Final

from corecube.database import let_go
from retrieval.encoders.session import cores

_FEWEST: Final = 4
_PER_CORE: Final = 2
#: After so long a search begins all the same: late, and with what it can get done.
_LONGEST_WAIT_SECONDS: Final = 15.0


class SearchTurns:
    """Turns of which so many are held at a time."""

    def __init__(self, at_once: int) -> None:
        self._turns = BoundedSemaphore(at_once)
        self._lock = Lock()
        self._wanted = 0

    @property
    def wanted(self) -> int:
        """How many searches are at work or wait for their turn."""
        return self._wanted

    @contextmanager
    def one(self, *, wait_seconds: float = _LONGEST_WAIT_SECONDS) -> Iterator[None]:
        """Hold one of the turns; who waits for one keeps no database connection, except inside a transaction."""
        self._count(1)
        is_held = False
        try:
            is_held = self._acquired(wait_seconds)
            yield
        finally:
            self._count(-1)
            if is_held:
                self._turns.release()

    def _acquired(self, wait_seconds: float) -> bool:
        if self._turns.acquire(blocking=False):
            return True
        let_go()
        return self._turns.acquire(timeout=wait_seconds)

    def _count(self, change: int) -> None:
        with self._lock:
            self._wanted += change


search_turns: Final = SearchTurns(max(_FEWEST, _PER_CORE * cores()))
