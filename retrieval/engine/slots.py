"""Counting semaphores: a fair one for a process, and one for all processes with a shared store."""

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import TIMEOUT_MAX, Event, Lock, Thread
from time import monotonic, sleep
from typing import Final, TypeVar
from uuid import uuid4

from corecube.shared_state.store import Store

_LOOK_SECONDS: Final = 0.5  #: Interval at which a waiting caller checks whether to give up.
_POLL_SECONDS: Final = 0.02  #: Interval at which a waiting caller asks for a slot of another process.

_T = TypeVar("_T")


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


_Leases = dict[str, float]  #: The end of each held slot on the store's clock.


class SharedSlots:
    """Counted slots of all processes that use the same store and name, granted in no order; thread-safe.

    A held slot is a lease that its process renews, so that the slots of a process that was killed are free after
    `lease_seconds`.
    """

    def __init__(self, count: int, store: Store, name: str, *, lease_seconds: float = 4.0) -> None:
        self.count = count
        self.elsewhere = 0  #: Slots that other processes held last.
        self.waiting = 0  #: Number of waiting callers.
        self._store, self._name, self._lease_seconds = store, f"slots {name}", lease_seconds
        self._holder = uuid4().hex
        self._lock = Lock()
        self._own: deque[str] = deque()
        self._is_renewing = False

    def take_free(self) -> bool:
        """Acquire a slot if one is free; return whether it was acquired."""
        lease = f"{self._holder} {uuid4().hex}"

        def taken(leases: _Leases, ends: float) -> tuple[_Leases, bool]:
            is_free = len(leases) < self.count
            return leases | ({lease: ends} if is_free else {}), is_free

        if not self._update(taken):
            return False
        with self._lock:
            self._own.append(lease)
            if not self._is_renewing:
                self._is_renewing = True
                Thread(target=self._renew, name="leases", daemon=True).start()
        return True

    def wait_for_one(self, seconds: float, *, gives_up: Callable[[int], bool] = lambda _: False) -> bool:
        """Wait for a slot up to this many seconds; return whether it was acquired. `gives_up` as of `Slots`."""
        ends = monotonic() + seconds
        with self._lock:
            self.waiting += 1
        try:
            while not (is_taken := self.take_free()) and monotonic() < ends and not gives_up(0):
                sleep(max(0.0, min(_POLL_SECONDS, ends - monotonic())))
        finally:
            with self._lock:
                self.waiting -= 1
        return is_taken

    def release(self) -> None:
        """Release a slot of this process."""
        with self._lock:
            lease = self._own.popleft()
        self._update(lambda leases, _: ({it: end for it, end in leases.items() if it != lease}, None))

    def _renew(self) -> None:
        while True:
            sleep(self._lease_seconds / 4)
            with self._lock:
                self._is_renewing = bool(self._own)
                if not self._own:
                    return
            self._update(lambda leases, ends: (leases | dict.fromkeys(self._own, ends), None))

    def _update(self, change: Callable[[_Leases, float], tuple[_Leases, _T]]) -> _T:
        def changed(value: _Leases | None, now: float) -> tuple[_Leases | None, _T]:
            current = {lease: ends for lease, ends in (value or {}).items() if ends > now}
            leases, result = change(current, now + self._lease_seconds)
            self.elsewhere = sum(not lease.startswith(self._holder) for lease in leases)
            return leases or None, result

        return self._store.update(self._name, changed)
