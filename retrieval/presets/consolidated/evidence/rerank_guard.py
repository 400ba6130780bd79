"""The state of a process's cross-encoders: circuit breaker, time per chunk, and counts."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from threading import Lock
from time import monotonic
from typing import Any, Final

from retrieval.encoders.breaker import BreakerState, CircuitBreaker
from retrieval.encoders.reranker import BreakingReranker, Reranker
from retrieval.engine.tunables import Tunables, tunable
from retrieval.presets.consolidated.evidence.density import DensityConfig, is_rate_in_band
from retrieval.presets.consolidated.evidence.scoring import ChunkTime, Provider, RerankPlanConfig, RerankSkip

_FROM_WORST: Final = (BreakerState.OPEN, BreakerState.HALF_OPEN, BreakerState.CLOSED)


@dataclass(frozen=True, slots=True)
class CutRate:
    """The share of a section's searches whose tail was cut off."""

    searches: int
    cut: int
    is_in_band: bool  #: Whether the share is in the target band; True without searches.

    @property
    def share(self) -> float:
        """Share of the searches whose pool was cut, 0 without searches."""
        return self.cut / self.searches if self.searches else 0.0


@dataclass
class RerankFigures:
    """Counts since the process started; thread-safe."""

    _providers: Counter[Provider] = field(default_factory=Counter)
    _skips: Counter[RerankSkip] = field(default_factory=Counter)
    _cuts: dict[str, Counter[bool]] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock, repr=False, compare=False)

    def scored(self, provider: Provider) -> None:
        """Count a pool scored by a provider."""
        with self._lock:
            self._providers[provider] += 1

    def skipped(self, reason: RerankSkip) -> None:
        """Count a pool that the cross-encoder did not score."""
        with self._lock:
            self._skips[reason] += 1

    def tightened(self, section: str, *, is_applied: bool) -> None:
        """Count a search for a section, and whether its pool was cut."""
        with self._lock:
            self._cuts.setdefault(section, Counter())[is_applied] += 1

    @property
    def providers(self) -> Mapping[Provider, int]:
        """Pools by provider; every provider is listed."""
        with self._lock:
            return {provider: self._providers[provider] for provider in Provider}

    @property
    def skips(self) -> Mapping[RerankSkip, int]:
        """Pools that the cross-encoder did not score, by reason; every reason is listed."""
        with self._lock:
            return {reason: self._skips[reason] for reason in RerankSkip}

    def cut_rates(self, config: DensityConfig) -> Mapping[str, CutRate]:
        """Return how often each section's pool was cut, by the section's name."""
        with self._lock:
            return {
                name: CutRate(outcomes.total(), outcomes[True], is_rate_in_band(outcomes, config))
                for name, outcomes in sorted(self._cuts.items())
            }


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakerConfig(Tunables, label="Circuit breaker"):
    """When calls to a failing cross-encoder stop."""

    failures: int = tunable(
        3, low=1, high=100, unit="failures", help="Failures in a row that open the breaker.", is_shared=True
    )
    open_seconds: float = tunable(
        60.0, low=0.0, high=3600.0, unit="s", help="Time before an open breaker allows a trial call.", is_shared=True
    )
    successes: int = tunable(
        2, low=1, high=100, unit="successes", help="Successful trials in a row that close the breaker.", is_shared=True
    )

    def breaker(self, name: str = "", **given: Any) -> CircuitBreaker:  # noqa: ANN401 -- arguments of the breaker
        """Return a new breaker with these numbers."""
        return CircuitBreaker(
            name, failures=self.failures, open_seconds=self.open_seconds, successes=self.successes, **given
        )


_Numbers = tuple[BreakerConfig, float, float, float]


@dataclass(frozen=True, slots=True)
class RerankGuard:
    """The circuit breaker and the time per chunk of one cross-encoder."""

    breaker: CircuitBreaker
    chunk_time: ChunkTime


class RerankGuards:
    """The guards of a process, one for each cross-encoder, and the counts of all of them; thread-safe.

    A cross-encoder is identified by type and name, since some are created for each search.
    """

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self.figures = RerankFigures()
        self._clock = clock
        self._lock = Lock()
        self._guards: dict[tuple[str, str], tuple[_Numbers, RerankGuard]] = {}

    def guard(self, reranker: Reranker, breaker: BreakerConfig, plan: RerankPlanConfig) -> RerankGuard:
        """Return the guard of a cross-encoder, created on first use and after a change of its configuration.

        The configuration is that of the live preset, which a request cannot change.
        """
        key = (type(reranker).__qualname__, reranker.name)
        numbers = (breaker, plan.chunk_ms, plan.learning, plan.forgetting)
        with self._lock:
            if key not in self._guards or self._guards[key][0] != numbers:
                # A local model fails for this machine only.
                service = reranker.name if isinstance(reranker, BreakingReranker) else ""
                counting = breaker.breaker(service and f"evidence {service}", clock=self._clock)
                self._guards[key] = numbers, RerankGuard(counting, ChunkTime(plan))
            return self._guards[key][1]

    @property
    def states(self) -> Mapping[str, BreakerState]:
        """Return each cross-encoder's breaker by its name: the worst state of those with one name."""
        with self._lock:
            guards = [(name, guard.breaker.state) for (_, name), (_, guard) in self._guards.items()]
        found = {name: {state for other, state in guards if other == name} for name, _ in guards}
        return {name: next(state for state in _FROM_WORST if state in states) for name, states in found.items()}

    @property
    def chunk_ms(self) -> Mapping[str, float]:
        """Return the expected time per chunk in ms, by cross-encoder."""
        with self._lock:
            return {name: guard.chunk_time.ms for (_, name), (_, guard) in self._guards.items()}
