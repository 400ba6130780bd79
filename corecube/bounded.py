"""Checks that their callers wait for no longer than they want, whatever hangs."""

from collections.abc import Callable
from concurrent.futures import Future
from threading import Lock, Thread
from time import monotonic
from typing import Generic, TypeVar

from django.db import connections

_Found = TypeVar("_Found")


class BoundedCheck(Generic[_Found]):
    """A check in a thread of its own, at most one at a time: whoever asks while it runs waits for the same answer.

    One that hangs therefore costs one thread, however often it is asked for.
    """

    def __init__(self, check: Callable[[], _Found]) -> None:
        self._check = check
        self._lock = Lock()
        self._answer: Future[_Found] = Future()
        self._begun: float | None = None

    def begin(self) -> None:
        """Begin the check unless it runs."""
        with self._lock:
            if self._begun is None or self._answer.done():
                self._answer, self._begun = Future(), monotonic()
                Thread(target=self._run, args=(self._answer,), name="check", daemon=True).start()

    def result(self, *, seconds: float) -> _Found:
        """Return what the check that was begun last finds. Raises what it raises.

        Raises TimeoutError when it has run for longer than so many seconds, whoever began it.
        """
        with self._lock:
            answer, left = self._answer, (self._begun or 0.0) + seconds - monotonic()
        return answer.result(timeout=max(0.0, left))

    def _run(self, answer: "Future[_Found]") -> None:
        try:
            found = self._check()
        except Exception as error:  # noqa: BLE001 -- whoever waits gets it
            _close_connections()
            answer.set_exception(error)
        else:
            _close_connections()
            answer.set_result(found)


def _close_connections() -> None:
    """Give back this thread's database connections: nobody else would."""
    for connection in connections.all(initialized_only=True):
        connection.close()
