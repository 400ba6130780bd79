"""The circuit breaker of the store: after several searches that it failed, the next ones end at once for a while."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from threading import Lock
from time import monotonic
from typing import Final

from corecube.errors import DatabaseUnavailableError
from retrieval.encoders.breaker import CircuitBreaker
from retrieval.encoders.reranker import MIN_FAILURE_SECONDS
from retrieval.engine.state import SearchState
from retrieval.errors import StorePausedError
from retrieval.presets.consolidated.evidence.rerank_guard import BreakerConfig

_FAILED: Final = ("dense_timeout", "fulltext_timeout", "timed_out_in_")  #: What codes of a failed read begin with.


@dataclass
class StoreGuard:
    """The breaker of a process, one for each configuration; thread-safe."""

    clock: Callable[[], float] = monotonic
    _breakers: dict[BreakerConfig, CircuitBreaker] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock, repr=False, compare=False)

    def breaker(self, config: BreakerConfig) -> CircuitBreaker:
        """Return the breaker with these numbers, created on first use."""
        with self._lock:
            if config not in self._breakers:
                self._breakers[config] = config.breaker(clock=self.clock, refusal=StorePausedError)
            return self._breakers[config]


@dataclass(frozen=True, slots=True)
class StoreUse:
    """Whether a search may use the store."""

    is_paused: bool


def guarded(run: Callable[[SearchState], SearchState], state: SearchState, breaker: CircuitBreaker) -> SearchState:
    """Return the state after a run, whose reads of the store count as one result for the breaker.

    While it is open, the run gets a `StoreUse` that says so. A read that timed out is a failure, but not one of a
    request with too little time. Raises what the run raises.
    """
    try:
        attempt = breaker.admitted()
    except StorePausedError:
        return run(replace(state, parts=state.parts_with(StoreUse(is_paused=True))))
    is_short = state.deadline.leg_seconds < MIN_FAILURE_SECONDS
    try:
        after = run(state)
    except DatabaseUnavailableError:
        attempt.failed()
        raise
    except BaseException:
        attempt.dismissed()
        raise
    if not any(code.startswith(_FAILED) for code in after.degraded):
        attempt.succeeded()
    elif is_short:
        attempt.dismissed()
    else:
        attempt.failed()
    return after
