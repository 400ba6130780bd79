"""The threads that answers are made in. No Django."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Lock
from typing import Final, ParamSpec, TypeVar

_P = ParamSpec("_P")
_T = TypeVar("_T")

#: So many calls for each thread, at work or waiting, are a crowd.
_CROWD: Final = 2


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
    def is_crowded(self) -> bool:
        """Whether more calls are unfinished than two for each thread."""
        return self._unfinished > _CROWD * self._threads_at_most

    def _done(self, _: Future[_T]) -> None:
        with self._lock:
            self._unfinished -= 1
