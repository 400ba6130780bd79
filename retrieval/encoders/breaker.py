"""Leaving a service alone for a while after it failed several times in a row."""

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
    """What a breaker does with the next call."""

    #: It goes through.
    CLOSED = "closed"
    #: It is refused: the service is left alone.
    OPEN = "open"
    #: One at a time goes through and tries the service.
    HALF_OPEN = "half_open"


class Attempt:
    """A call that a breaker let through, until it is known what came of it; only what is said first counts."""

    def __init__(self, breaker: "CircuitBreaker", *, is_trial: bool) -> None:
        self._breaker = breaker
        self._is_trial = is_trial
        self._is_settled = False
        self._lock = Lock()

    def failed(self) -> None:
        """Count it as a failure."""
        if self._settles():
            self._breaker._fail(is_trial=self._is_trial)  # noqa: SLF001 -- the breaker's other half

    def succeeded(self) -> None:
        """Count it as a success."""
        if self._settles():
            self._breaker._succeed(is_trial=self._is_trial)  # noqa: SLF001 -- the breaker's other half

    def dismissed(self) -> None:
        """Count it as nothing: after a trial the next call may try."""
        if self._settles() and self._is_trial:
            self._breaker._let_try()  # noqa: SLF001 -- the breaker's other half

    def _settles(self) -> bool:
        with self._lock:
            is_first, self._is_settled = not self._is_settled, True
            return is_first


class CircuitBreaker:
    """Counts failures in a row; after `failures` of them it is open and lets no call through for `open_seconds`.

    Then one call at a time may try: `successes` of them in a row close the breaker, one failure opens it again. With
    more than one success wanted, a service that comes and goes does not close and open it with every trial. A trial of
    which nothing is heard any more is followed by another one after the same time. What a call says that began before
    the breaker opened counts no more. `refusal` makes the error for calls that are not let through. Safe to share
    between threads.
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
        self._wanted = successes
        self._clock = clock
        self._refusal = refusal
        self._lock = Lock()
        self._failures = 0
        self._successes = 0
        #: From when on the next call may try; None while it is closed.
        self._tries_from: float | None = None
        self._is_trying = False

    @property
    def is_open(self) -> bool:
        """Whether the last thing known of the service is that it fails; also while trials go on."""
        return self._tries_from is not None

    @property
    def state(self) -> BreakerState:
        """Closed, open, or half open: while trials go on, and once the next call would be one."""
        with self._lock:
            if self._tries_from is None:
                return BreakerState.CLOSED
            is_trial_time = self._is_trying or self._clock() >= self._tries_from
            return BreakerState.HALF_OPEN if is_trial_time else BreakerState.OPEN

    @property
    def admits(self) -> bool:
        """Whether a call that came now would be let through."""
        with self._lock:
            return self._tries_from is None or self._clock() >= self._tries_from

    def call(self, work: Callable[[], _T], *, excused: tuple[type[Exception], ...] = ()) -> _T:
        """Return what the work returns; raise the refusal at once while open.

        Its every exception is a failure, but for those `excused`, which tell nothing: then the next call may try.
        """
        with self.guarding(excused=excused):
            return work()

    @contextmanager
    def guarding(self, *, excused: tuple[type[Exception], ...] = ()) -> Iterator[None]:
        """Run a block as `call` runs its work; one that is broken off from outside tells nothing."""
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
        """Return a call that may begin now, to be told later what came of it; raise the refusal while open."""
        return Attempt(self, is_trial=self._admit())

    def _admit(self) -> bool:
        """Return whether the call tries an open breaker."""
        with self._lock:
            if self._tries_from is None:
                return False
            if (now := self._clock()) < self._tries_from:
                raise self._refusal()
            # Whoever comes while this call tries the service waits as after a failure.
            self._tries_from = now + self._open_seconds
            self._is_trying = True
            return True

    def _fail(self, *, is_trial: bool) -> None:
        with self._lock:
            self._failures += 1
            is_open = self._tries_from is not None
            if (is_open and is_trial) or (not is_open and self._failures >= self._limit):
                self._tries_from = self._clock() + self._open_seconds
                self._is_trying = False
                self._successes = 0

    def _let_try(self) -> None:
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
                if self._successes >= self._wanted:
                    self._failures = self._successes = 0
                    self._tries_from = None
