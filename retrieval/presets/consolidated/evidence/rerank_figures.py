"""What a process counts of reranking: who scored, what was skipped and why, how often a pool's tail was cut off."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from threading import Lock

from retrieval.presets.consolidated.evidence.density import DensityConfig, is_rate_in_band
from retrieval.presets.consolidated.evidence.rerank_plan import Provider, RerankSkip


@dataclass(frozen=True, slots=True)
class CutRate:
    """How often the tail of a section's pool was cut off."""

    #: Searches for the section, and how many of their pools were cut.
    searches: int
    cut: int
    #: Whether the share lies in the band that was aimed at; True without searches.
    is_in_band: bool

    @property
    def share(self) -> float:
        """Share of the searches whose pool was cut, 0 without searches."""
        return self.cut / self.searches if self.searches else 0.0


@dataclass
class RerankFigures:
    """Counts since the process began. Safe to share between threads."""

    _providers: Counter[Provider] = field(default_factory=Counter)
    _skips: Counter[RerankSkip] = field(default_factory=Counter)
    _cuts: dict[str, Counter[bool]] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock, repr=False, compare=False)

    def scored(self, provider: Provider) -> None:
        """Count a pool that was scored by it."""
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
        """Pools by what scored them; every provider is named."""
        with self._lock:
            return {provider: self._providers[provider] for provider in Provider}

    @property
    def skips(self) -> Mapping[RerankSkip, int]:
        """Pools that the cross-encoder did not score, by reason; every reason is named."""
        with self._lock:
            return {reason: self._skips[reason] for reason in RerankSkip}

    def cut_rates(self, config: DensityConfig) -> Mapping[str, CutRate]:
        """Return how often each section's pool was cut, by the section's name."""
        with self._lock:
            return {
                name: CutRate(outcomes.total(), outcomes[True], is_rate_in_band(outcomes, config))
                for name, outcomes in sorted(self._cuts.items())
            }
