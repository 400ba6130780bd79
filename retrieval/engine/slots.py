"""A fair counting semaphore."""

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import TIMEOUT_MAX, Event, Lock
from time import monotonic
from typing import Final

_LOOK_SECONDS: Final = 0.5  #: Interval at which a waiting caller checks whether to give up.


class Slots:
    """Counted slots, granted first come, first served; thread-safe."""

    def __init__(self, count: int) -> None:
        self.count = count
        self._lock = Lock()
        self.held = 0  #: Number of held slots.
        self._queue: deque[Event] = deque()

    @property
    def waiting(self) -> int:
        """Number of waiting callers."""
        return len(self._queue)

    @contextmanager
    def one(self) -> Iterator[None]:
        """Hold a slot, waiting without a timeout."""
        self.wait_for_one(TIMEOUT_MAX)
        try:
            yield
        finally:
            self.release()

    def take_free(self) -> bool:
        """Acquire a slot if one is free and nobody waits; return whether it was acquired."""
        with self._lock:
            if self.held < self.count and not self._queue:
                self.held += 1
                return True
            return False

    def wait_for_one(self, seconds: float, *, gives_up: Callable[[int], bool] = lambda _: False) -> bool:
        """Wait for a slot up to this many seconds; return whether it was acquired.

        `gives_up` is called at intervals with the number of callers ahead, and returns whether to leave the queue.
        """
        with self._lock:
            if self.held < self.count and not self._queue:
                self.held += 1
                return True
            if seconds <= 0:
                return False
            mine = Event()
            self._queue.append(mine)
        ends = monotonic() + seconds
        while not mine.wait(max(0.0, min(_LOOK_SECONDS, ends - monotonic()))):
            with self._lock:
                # The slot may have been granted just when the wait ended.
                if mine.is_set():
                    return True
                if monotonic() >= ends or gives_up(self._queue.index(mine)):
                    self._queue.remove(mine)
                    return False
        return True

    def release(self) -> None:
        """Release a slot, to the longest waiting caller if there is one."""
        with self._lock:
            if self._queue:
                self._queue.popleft().set()
            else:
                self.held -= 1
