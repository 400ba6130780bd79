"""Checks with a timeout, which run in a thread."""

from collections.abc import Callable
from concurrent.futures import Future
from threading import Lock, Thread
from time import monotonic
from typing import Generic, TypeVar

from django.db import connections

_Result = TypeVar("_Result")


class BoundedCheck(Generic[_Result]):
    """A check that runs in a thread, at most once at a time: if it hangs, it blocks one thread, as callers share it."""

    def __init__(self, check: Callable[[], _Result]) -> None:
        self._check = check
        self._lock = Lock()
        self._result: Future[_Result] = Future()
        self._started_at: float | None = None

    def start(self) -> None:
        """Start the check unless it is running."""
        with self._lock:
            if self._started_at is None or self._result.done():
                self._result, self._started_at = Future(), monotonic()
                Thread(target=self._run, args=(self._result,), name="check", daemon=True).start()

    def result(self, *, seconds: float) -> _Result:
        """Return or raise the result of the last check; raise TimeoutError if it has been running for `seconds`."""
        with self._lock:
            result, left = self._result, (self._started_at or 0.0) + seconds - monotonic()
        return result.result(timeout=max(0.0, left))

    def _run(self, result: "Future[_Result]") -> None:
        try:
            value = self._check()
        except Exception as error:  # noqa: BLE001 -- raised by `result`
            connections.close_all()
            result.set_exception(error)
        else:
            connections.close_all()
            result.set_result(value)
