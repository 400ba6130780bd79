"""Slots of which so many are held at a time; who comes first gets the next one."""

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import TIMEOUT_MAX, Event, Lock
from time import monotonic
from typing import Final

#: How often who waits looks whether waiting is still worth it.
_LOOK_SECONDS: Final = 0.5


class Slots:
    """Counted slots, handed on in the order in which they were asked for. Safe to share between threads."""

    def __init__(self, count: int) -> None:
        self.count = count
        self._lock = Lock()
        self._held = 0
        self._queue: deque[Event] = deque()

    @property
    def held(self) -> int:
        """How many are held, at most as many as there are."""
        return self._held

    @property
    def waiting(self) -> int:
        """How many wait for one."""
        return len(self._queue)

    @contextmanager
    def one(self) -> Iterator[None]:
        """Hold a slot, waiting for it as long as that takes."""
        self.wait_for_one(TIMEOUT_MAX)
        try:
            yield
        finally:
            self.give_back()

    def take_free(self) -> bool:
        """Take a slot if one is free and nobody waits for it; return whether it was taken."""
        with self._lock:
            if self._held < self.count and not self._queue:
                self._held += 1
                return True
            return False

    def wait_for_one(self, seconds: float, *, gives_up: Callable[[int], bool] = lambda _: False) -> bool:
        """Wait so long for a slot, behind those who wait already; return whether it was taken.

        `gives_up` is asked now and then whether to leave the queue, with the number of those who are ahead in it.
        """
        with self._lock:
            if self._held < self.count and not self._queue:
                self._held += 1
                return True
            if seconds <= 0:
                return False
            mine = Event()
            self._queue.append(mine)
        ends = monotonic() + seconds
        while not mine.wait(max(0.0, min(_LOOK_SECONDS, ends - monotonic()))):
            with self._lock:
                # It may have been handed on in the very moment in which the wait ended.
                if mine.is_set():
                    return True
                if monotonic() >= ends or gives_up(self._queue.index(mine)):
                    self._queue.remove(mine)
                    return False
        return True

    def give_back(self) -> None:
        """Hand a slot that is held to who has waited longest, or free it."""
        with self._lock:
            if self._queue:
                self._queue.popleft().set()
            else:
                self._held -= 1
