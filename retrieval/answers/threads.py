"""Threads that write answers, with first-token priority. No Django."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Lock
from time import monotonic, sleep
from typing import Final, ParamSpec, TypeVar

_P = ParamSpec("_P")
_T = TypeVar("_T")

_BACKLOG_LIMIT: Final = 2  #: Maximum of running and waiting calls per thread before the pool is crowded.
_MANY: Final = 3  #: This many answers without a first token delay the final steps of others, up to a maximum time.
_MAX_WAIT_SECONDS: Final = 5.0
_POLL_SECONDS: Final = 0.005
#: Minimum time between two final steps: users often ask the next question when an answer ends, so answers that end
#: together would cause a burst of new ones.
_GAP_SECONDS: Final = 0.02


class AnswerThreads(ThreadPoolExecutor):
    """A thread pool that reports an overload."""

    def __init__(self, threads: int) -> None:
        super().__init__(threads, thread_name_prefix="answer")
        self._max_threads = threads
        self._lock = Lock()
        self._unfinished = 0

    def submit(self, fn: Callable[_P, _T], /, *args: _P.args, **kwargs: _P.kwargs) -> Future[_T]:
        """Run the call when a thread is free."""
        with self._lock:
            self._unfinished += 1
        future = super().submit(fn, *args, **kwargs)
        future.add_done_callback(self._done)
        return future

    @property
    def unfinished(self) -> int:
        """The number of running and waiting calls."""
        return self._unfinished

    @property
    def is_crowded(self) -> bool:
        """Whether more than two calls per thread are unfinished."""
        return self._unfinished > _BACKLOG_LIMIT * self._max_threads

    def _done(self, _: Future[_T]) -> None:
        with self._lock:
            self._unfinished -= 1


class EndingThreads(ThreadPoolExecutor):
    """Threads for the final steps of answers whose text is sent; answers without a first token have priority."""

    def __init__(self, threads: int, waiting: Callable[[], int]) -> None:
        """Take `waiting`, which returns the number of answers without a first token."""
        super().__init__(threads, thread_name_prefix="ending")
        self._waiting = waiting
        self._lock = Lock()
        self._next = 0.0

    def submit(self, fn: Callable[_P, _T], /, *args: _P.args, **kwargs: _P.kwargs) -> Future[_T]:
        """Run the call when a thread is free and few answers wait for a first token, in order; at the latest in 5 s."""
        latest = monotonic() + _MAX_WAIT_SECONDS

        def call() -> _T:
            while not self._may_run() and monotonic() < latest:
                sleep(_POLL_SECONDS)
            return fn(*args, **kwargs)

        return super().submit(call)

    def _may_run(self) -> bool:
        with self._lock:
            now = monotonic()
            if self._waiting() >= _MANY or now < self._next:
                return False
            self._next = now + _GAP_SECONDS
            return True
