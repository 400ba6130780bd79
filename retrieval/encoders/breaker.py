"""A circuit breaker: pauses calls of a service after several consecutive failures."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from threading import Lock
from time import monotonic
from typing import Final, TypeVar

from retrieval.errors import RerankBreakerOpenError

_FAILURES: Final = 3
_OPEN_SECONDS: Final = 30.0

_T = TypeVar("_T")


class BreakerState(StrEnum):
    """The state of a breaker."""

    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"  #: One call at a time is allowed as a trial.


class Attempt:
    """An allowed call with an open result; only the first reported result counts."""

    def __init__(self, breaker: "CircuitBreaker", *, is_trial: bool) -> None:
        self._breaker = breaker
        self._is_trial = is_trial
        self._is_settled = False
        self._lock = Lock()

    def failed(self) -> None:
        """Report a failure."""
        if self._settles():
            self._breaker._fail(is_trial=self._is_trial)  # noqa: SLF001 -- the breaker's other half

    def succeeded(self) -> None:
        """Report a success."""
        if self._settles():
            self._breaker._succeed(is_trial=self._is_trial)  # noqa: SLF001 -- the breaker's other half

    def dismissed(self) -> None:
        """Report no result: after a trial the next call is a trial."""
        if self._settles() and self._is_trial:
            self._breaker._allow_trial()  # noqa: SLF001 -- the breaker's other half

    def _settles(self) -> bool:
        with self._lock:
            is_first, self._is_settled = not self._is_settled, True
            return is_first


class CircuitBreaker:
    """Counts consecutive failures; after `failures` of them it is open and refuses all calls for `open_seconds`.

    Then one call at a time is a trial: `successes` consecutive ones close the breaker, one failure opens it again. More
    than one required success keeps an unstable service from closing and opening it with every trial. A trial without
    a result is followed by another one after `open_seconds`. Results of calls that began before the breaker opened are
    ignored. `refusal` creates the error for refused calls. Thread-safe.
    """

    def __init__(
        self,
        *,
        failures: int = _FAILURES,
        open_seconds: float = _OPEN_SECONDS,
        successes: int = 1,
        clock: Callable[[], float] = monotonic,
        refusal: Callable[[], Exception] = RerankBreakerOpenError,
    ) -> None:
        self._limit = failures
        self._open_seconds = open_seconds
        self._required_successes = successes
        self._clock = clock
        self._refusal = refusal
        self._lock = Lock()
        self._failures = 0
        self._successes = 0
        self._tries_from: float | None = None  #: Time of the next trial; None while the breaker is closed.
        self._is_trying = False

    @property
    def is_open(self) -> bool:
        """Whether the breaker is open or half open."""
        return self._tries_from is not None

    @property
    def state(self) -> BreakerState:
        """The state; half open during a trial, and when the next call would be one."""
        with self._lock:
            if self._tries_from is None:
                return BreakerState.CLOSED
            is_trial_time = self._is_trying or self._clock() >= self._tries_from
            return BreakerState.HALF_OPEN if is_trial_time else BreakerState.OPEN

    @property
    def admits(self) -> bool:
        """Whether a call would be allowed now."""
        with self._lock:
            return self._tries_from is None or self._clock() >= self._tries_from

    def call(self, work: Callable[[], _T], *, excused: tuple[type[Exception], ...] = ()) -> _T:
        """Return the result of the work; raise the refusal at once while open.

        All its exceptions are failures, except those `excused`, which count as no result.
        """
        with self.guarding(excused=excused):
            return work()

    @contextmanager
    def guarding(self, *, excused: tuple[type[Exception], ...] = ()) -> Iterator[None]:
        """Run a block as `call` runs its work; an interrupted block counts as no result."""
        attempt = self.admitted()
        try:
            yield
        except excused:
            attempt.dismissed()
            raise
        except Exception:
            attempt.failed()
            raise
        except BaseException:
            attempt.dismissed()
            raise
        attempt.succeeded()

    def admitted(self) -> Attempt:
        """Return a call that may start now and whose result is reported later; raise the refusal while open."""
        with self._lock:
            if self._tries_from is None:
                return Attempt(self, is_trial=False)
            if (now := self._clock()) < self._tries_from:
                raise self._refusal()
            # During the trial other calls are refused as after a failure.
            self._tries_from = now + self._open_seconds
            self._is_trying = True
            return Attempt(self, is_trial=True)

    def _fail(self, *, is_trial: bool) -> None:
        with self._lock:
            self._failures += 1
            is_open = self._tries_from is not None
            if (is_open and is_trial) or (not is_open and self._failures >= self._limit):
                self._tries_from = self._clock() + self._open_seconds
                self._is_trying = False
                self._successes = 0

    def _allow_trial(self) -> None:
        with self._lock:
            if self._tries_from is not None:
                self._tries_from = self._clock()
                self._is_trying = False

    def _succeed(self, *, is_trial: bool) -> None:
        with self._lock:
            if self._tries_from is None:
                self._failures = 0
            elif is_trial:
                self._successes += 1
                self._is_trying = False
                self._tries_from = self._clock()
                if self._successes >= self._required_successes:
                    self._failures = self._successes = 0
                    self._tries_from = None
