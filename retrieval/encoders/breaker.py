"""Leaving a service alone for a while after it failed several times in a row."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock
from time import monotonic
from typing import Final, TypeVar

from retrieval.errors import RerankBreakerOpenError

_FAILURES: Final = 3
_OPEN_SECONDS: Final = 30.0

_T = TypeVar("_T")


class CircuitBreaker:
    """Counts failures in a row; after `failures` of them it is open and lets no call through for `open_seconds`.

    Then one call may try: its success closes the breaker, its failure opens it again. A call of which nothing is
    heard any more is followed by another one after the same time. `refusal` makes the error for calls that are not let
    through. Safe to share between threads.
    """

    def __init__(
        self,
        *,
        failures: int = _FAILURES,
        open_seconds: float = _OPEN_SECONDS,
        clock: Callable[[], float] = monotonic,
        refusal: Callable[[], Exception] = RerankBreakerOpenError,
    ) -> None:
        self._most = failures
        self._open_seconds = open_seconds
        self._clock = clock
        self._refusal = refusal
        self._lock = Lock()
        self._failures = 0
        self._opened_at: float | None = None

    @property
    def is_open(self) -> bool:
        """Whether the last thing known of the service is that it fails."""
        return self._opened_at is not None

    def call(self, work: Callable[[], _T], *, excused: tuple[type[Exception], ...] = ()) -> _T:
        """Return what the work returns; raise the refusal at once while open.

        Its every exception is a failure, but for those `excused`, which tell nothing: then the next call may try.
        """
        with self.guarding(excused=excused):
            return work()

    @contextmanager
    def guarding(self, *, excused: tuple[type[Exception], ...] = ()) -> Iterator[None]:
        """Run a block as `call` runs its work; one that is broken off from outside tells nothing."""
        is_trial = self._admit()
        try:
            yield
        except excused:
            if is_trial:
                self._let_try()
            raise
        except Exception:
            self._fail()
            raise
        except BaseException:
            if is_trial:
                self._let_try()
            raise
        self._succeed()

    def _admit(self) -> bool:
        """Return whether the call tries an open breaker."""
        with self._lock:
            if self._opened_at is None:
                return False
            now = self._clock()
            if now - self._opened_at < self._open_seconds:
                raise self._refusal()
            # Whoever comes while this call tries the service waits as after a failure.
            self._opened_at = now
            return True

    def _fail(self) -> None:
        with self._lock:
            self._failures += 1
            if self._failures >= self._most:
                self._opened_at = self._clock()

    def _let_try(self) -> None:
        with self._lock:
            if self._opened_at is not None:
                self._opened_at = self._clock() - self._open_seconds

    def _succeed(self) -> None:
        with self._lock:
            self._failures = 0
            self._opened_at = None
