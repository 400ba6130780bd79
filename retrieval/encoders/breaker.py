"""A circuit breaker: pauses calls of a service after several consecutive failures."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import astuple, dataclass, replace
from enum import StrEnum
from threading import Lock
from time import monotonic
from typing import Any, Final, TypeVar

from corecube.shared_state.store import MemoryStore, Store, shared
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


@dataclass(frozen=True, slots=True)
class _Record:
    """What a breaker has counted."""

    failures: int = 0
    successes: int = 0
    tries_from: float | None = None  #: Time of the next trial; None while the breaker is closed.
    is_trying: bool = False


_CLOSED: Final = _Record()


class CircuitBreaker:
    """Counts consecutive failures; after `failures` of them it is open and refuses all calls for `open_seconds`.

    Then one call at a time is a trial: `successes` consecutive ones close the breaker, one failure opens it again. More
    than one required success keeps an unstable service from closing and opening it with every trial. A trial without
    a result is followed by another one after `open_seconds`. Results of calls that began before the breaker opened are
    ignored. `refusal` creates the error for refused calls. Thread-safe.

    With the `name` of a service, all processes with a shared store count together.
    """

    def __init__(
        self,
        name: str = "",
        *,
        failures: int = _FAILURES,
        open_seconds: float = _OPEN_SECONDS,
        successes: int = 1,
        clock: Callable[[], float] = monotonic,
        refusal: Callable[[], Exception] = RerankBreakerOpenError,
    ) -> None:
        self._key = f"breaker {name} {failures} {open_seconds} {successes}"
        self._store: Store = (name and shared()) or MemoryStore(clock)
        self._limit = failures
        self._open_seconds = open_seconds
        self._required_successes = successes
        self._refusal = refusal

    @property
    def is_open(self) -> bool:
        """Whether the breaker is open or half open."""
        return self.state is not BreakerState.CLOSED

    @property
    def state(self) -> BreakerState:
        """The state; half open during a trial, and when the next call would be one."""

        def read(found: _Record, now: float) -> tuple[_Record, BreakerState]:
            if found.tries_from is None:
                return found, BreakerState.CLOSED
            is_trial_time = found.is_trying or now >= found.tries_from
            return found, BreakerState.HALF_OPEN if is_trial_time else BreakerState.OPEN

        return self._update(read)

    @property
    def admits(self) -> bool:
        """Whether a call would be allowed now."""
        return self._update(lambda found, now: (found, found.tries_from is None or now >= found.tries_from))

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

        def admit(found: _Record, now: float) -> tuple[_Record, bool | None]:
            if found.tries_from is None:
                return found, False
            if now < found.tries_from:
                return found, None
            # During the trial other calls are refused as after a failure.
            return replace(found, tries_from=now + self._open_seconds, is_trying=True), True

        is_trial = self._update(admit)
        if is_trial is None:
            raise self._refusal()
        return Attempt(self, is_trial=is_trial)

    def _fail(self, *, is_trial: bool) -> None:
        def fail(found: _Record, now: float) -> tuple[_Record, None]:
            failures, is_open = found.failures + 1, found.tries_from is not None
            if (is_open and is_trial) or (not is_open and failures >= self._limit):
                return _Record(failures, tries_from=now + self._open_seconds), None
            return replace(found, failures=failures), None

        self._update(fail)

    def _allow_trial(self) -> None:
        def allow(found: _Record, now: float) -> tuple[_Record, None]:
            return found if found.tries_from is None else replace(found, tries_from=now, is_trying=False), None

        self._update(allow)

    def _succeed(self, *, is_trial: bool) -> None:
        def succeed(found: _Record, now: float) -> tuple[_Record, None]:
            if found.tries_from is None:
                return replace(found, failures=0), None
            if not is_trial:
                return found, None
            successes = found.successes + 1
            if successes >= self._required_successes:
                return _Record(), None
            return replace(found, successes=successes, tries_from=now, is_trying=False), None

        self._update(succeed)

    def _update(self, change: Callable[[_Record, float], tuple[_Record, _T]]) -> _T:
        def changed(value: list[Any] | None, now: float) -> tuple[list[Any] | None, _T]:
            record, result = change(_Record(*value) if value else _CLOSED, now)
            return None if record == _CLOSED else list(astuple(record)), result

        return self._store.update(self._key, changed)
