"""The threads that answers are made in: beginnings before endings. No Django."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Lock
from time import monotonic, sleep
from typing import Final, ParamSpec, TypeVar

_P = ParamSpec("_P")
_T = TypeVar("_T")

#: So many calls for each thread, at work or waiting, are a crowd.
_BACKLOG_LIMIT: Final = 2
#: So many answers without a first word keep the endings of others waiting, for so long at the most.
_MANY: Final = 3
_MAX_WAIT_SECONDS: Final = 5.0
_LOOK_AGAIN_SECONDS: Final = 0.005
#: Between two endings. Whoever has an answer may ask the next question at once: endings let go together come back as
#: a crowd of beginnings.
_GAP_SECONDS: Final = 0.02


class AnswerThreads(ThreadPoolExecutor):
    """Threads that know whether more is asked of them than they soon get done."""

    def __init__(self, threads: int) -> None:
        super().__init__(threads, thread_name_prefix="answer")
        self._threads_at_most = threads
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
        """How many calls are at work or wait for a thread."""
        return self._unfinished

    @property
    def is_crowded(self) -> bool:
        """Whether more calls are unfinished than two for each thread."""
        return self._unfinished > _BACKLOG_LIMIT * self._threads_at_most

    def _done(self, _: Future[_T]) -> None:
        with self._lock:
            self._unfinished -= 1


class EndingThreads(ThreadPoolExecutor):
    """Threads for what is left to do of answers whose words are out: who waits for a first word goes before."""

    def __init__(self, threads: int, beginnings: Callable[[], int]) -> None:
        """`beginnings` says how many answers have no first word yet."""
        super().__init__(threads, thread_name_prefix="ending")
        self._beginnings = beginnings
        self._lock = Lock()
        self._next = 0.0

    def submit(self, fn: Callable[_P, _T], /, *args: _P.args, **kwargs: _P.kwargs) -> Future[_T]:
        """Run the call when a thread is free and few others begin, in the order asked for; after 5 s all the same."""
        latest = monotonic() + _MAX_WAIT_SECONDS

        def call() -> _T:
            while not self._may_go() and monotonic() < latest:
                sleep(_LOOK_AGAIN_SECONDS)
            return fn(*args, **kwargs)

        return super().submit(call)

    def _may_go(self) -> bool:
        with self._lock:
            now = monotonic()
            if self._beginnings() >= _MANY or now < self._next:
                return False
            self._next = now + _GAP_SECONDS
            return True
