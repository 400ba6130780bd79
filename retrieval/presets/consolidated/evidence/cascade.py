"""The recovery cascade for an empty pool: tiers of further searches until one finds evidence.

Tiers drop filters of the request (documents, headings, the embedding index); the scope never changes.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from corecube.errors import CoreCubeError
from retrieval.encoders.cosine_scale import UNSCALED, CosineScale
from retrieval.engine.tunables import Tunables, fraction, tunable
from retrieval.engine.types import Hit, Ranking

EXHAUSTED: Final = "fallback_exhausted"
OUT_OF_TIME: Final = "out_of_time"
TIER_RESULT: Final = "recovery_tier_result"


@dataclass(frozen=True, slots=True, kw_only=True)
class CascadeConfig(Tunables, label="Recovery"):
    """The fallback tiers for an empty pool."""

    first_wait_seconds: float = tunable(
        0.5,
        low=0.0,
        high=10.0,
        unit="s",
        help="Wait after the first tier; it doubles with each tier.",
        at_most="max_wait_seconds",
    )
    max_wait_seconds: float = tunable(4.0, low=0.0, high=60.0, unit="s", help="Maximum wait, before jitter.")
    jitter: float = fraction(0.25, help="Random variation of a wait, as a share of it.")
    structure_minimum: int = tunable(
        3,
        low=1,
        high=100,
        unit="chunks",
        help="Number of chunks under matching headings from which the whole scope is not searched.",
    )
    min_tokens: int = tunable(5, low=0, high=500, unit="tokens", help="Minimum number of tokens of a recovered chunk.")
    floor_share: float = fraction(0.5, help="Share of the section's score floor that a recovered chunk must reach.")


class Tier(StrEnum):
    """A tier, in the order in which they are tried."""

    DOCUMENTS = "document_filter_relaxation"  #: Without the request's documents.
    STRUCTURE = "structure_scoped"  #: Only the headings that structural routing found.
    COMPARTMENT = "compartment_sweep"  #: Without any filter: the entire compartment.
    INDEXES = "index_sweep"  #: In every embedding index.
    LEXICAL = "lexical"


def tiers_for(*, has_documents: bool, has_structure: bool) -> tuple[Tier, ...]:
    """Return the tiers to try, in order; without a document filter or headings their tiers are left out."""
    left_out = {*(() if has_documents else (Tier.DOCUMENTS,)), *(() if has_structure else (Tier.STRUCTURE,))}
    return tuple(tier for tier in Tier if tier not in left_out)


def backoff_seconds(attempt: int, *, draw: float, config: CascadeConfig) -> float:
    """Return the wait after an attempt, from 1: exponential up to a maximum, with jitter, none for a `draw` of 0.5."""
    wait: float = min(config.max_wait_seconds, config.first_wait_seconds * 2.0 ** (attempt - 1))
    return wait * (1 + config.jitter * (2 * draw - 1))


@dataclass(frozen=True, slots=True)
class QualityGate:
    """The requirements for a recovered chunk."""

    min_quality: float
    min_nearness: float  #: Not required of a chunk without a cosine, or of one found by text only.
    min_tokens: int
    scale: CosineScale = UNSCALED

    @classmethod
    def of(
        cls, *, quality_floor: float, score_floor: float, config: CascadeConfig, scale: CosineScale = UNSCALED
    ) -> "QualityGate":
        """Return the gate of a section with these floors."""
        return cls(quality_floor, config.floor_share * score_floor, config.min_tokens, scale)

    def passes(self, hit: Hit, *, by_words: bool = False) -> bool:
        """Return whether the hit is evidence; nearness is not required of one found by text only."""
        is_text = hit.chunk.token_count >= self.min_tokens and bool(hit.chunk.text.strip())
        nearness = self.scale.nearness_of(hit)
        is_near = by_words or nearness is None or nearness >= self.min_nearness
        return is_text and is_near and hit.chunk.quality >= self.min_quality


@dataclass(frozen=True, slots=True, kw_only=True)
class TierResult:
    """The result of one tier."""

    tier: Tier
    attempt: int  #: From 1.
    found: int
    passed: int
    is_accepted: bool
    is_expected: bool  #: Whether the tier is ordinary, so that a failure is no warning.
    seconds: float
    waited_seconds: float
    error: str = ""

    def event(self) -> dict[str, object]:
        """Return it as a structured event."""
        return {
            "event": TIER_RESULT,
            "tier": str(self.tier),
            "attempt": self.attempt,
            "found": self.found,
            "passed": self.passed,
            "accepted": self.is_accepted,
            "level": "info" if self.is_accepted or self.is_expected else "warning",
            "ms": round(self.seconds * 1000, 1),
            "waited_ms": round(self.waited_seconds * 1000, 1),
            "error": self.error,
        }


@dataclass(frozen=True, slots=True)
class Recovered:
    """The result of the cascade."""

    hits: Ranking = ()
    tier: Tier | None = None
    results: tuple[TierResult, ...] = ()
    is_cut_short: bool = False  #: Whether the time was up before all tiers were tried.

    @property
    def events(self) -> tuple[dict[str, object], ...]:
        """One event per tier, and a final one if nothing was found."""
        tried = tuple(result.event() for result in self.results)
        if self.hits:
            return tried
        name = OUT_OF_TIME if self.is_cut_short else EXHAUSTED
        return (*tried, {"event": name, "tiers": len(self.results), "level": "warning"})


@dataclass(frozen=True, slots=True, kw_only=True)
class CascadeWorld:
    """The environment of the cascade."""

    clock: Callable[[], float]
    sleep: Callable[[float], None]
    draw: Callable[[], float]
    remaining_seconds: Callable[[], float]
    tolerated: tuple[type[Exception], ...] = (CoreCubeError,)  #: Errors that fail a tier but not the cascade.


@dataclass
class Cascade:
    """Tries tiers in order. One object serves one pool."""

    search: Callable[[Tier], Ranking]
    gate: QualityGate
    config: CascadeConfig
    world: CascadeWorld
    has_documents: bool = False
    has_structure: bool = False
    _results: list[TierResult] = field(default_factory=list)
    _aside: Ranking = ()  #: Passing hits of the structure tier, too few to skip the sweep.

    def run(self) -> Recovered:
        """Return the first tier's hits that pass the gate, and the results; it ends without time to wait for a tier."""
        waited = 0.0
        tiers = tiers_for(has_documents=self.has_documents, has_structure=self.has_structure)
        for attempt, tier in enumerate(tiers, start=1):
            if attempt > 1:
                waited = backoff_seconds(attempt - 1, draw=self.world.draw(), config=self.config)
            if self.world.remaining_seconds() <= waited:
                return self._ended(is_cut_short=True)
            if waited:
                self.world.sleep(waited)
            if hits := self._tried(tier, attempt, waited):
                return Recovered(hits, tier, tuple(self._results))
        return self._ended(is_cut_short=False)

    def _ended(self, *, is_cut_short: bool) -> Recovered:
        return Recovered(self._aside, Tier.STRUCTURE if self._aside else None, tuple(self._results), is_cut_short)

    def _tried(self, tier: Tier, attempt: int, waited: float) -> Ranking:
        started = self.world.clock()
        found: Ranking = ()
        error = ""
        try:
            found = self.search(tier)
        except self.world.tolerated as problem:
            error = type(problem).__name__
        passing = tuple(hit for hit in found if self.gate.passes(hit, by_words=tier is Tier.LEXICAL))
        minimum = self.config.structure_minimum if tier is Tier.STRUCTURE else 1
        result = TierResult(
            tier=tier,
            attempt=attempt,
            found=len(found),
            passed=len(passing),
            is_accepted=len(passing) >= minimum,
            # A sweep without a document filter is ordinary.
            is_expected=tier is Tier.COMPARTMENT and not self.has_documents,
            seconds=self.world.clock() - started,
            waited_seconds=waited,
            error=error,
        )
        self._results.append(result)
        if result.is_accepted:
            # Behind those that were set aside, which come from where the answer was expected.
            known = {hit.chunk_id for hit in self._aside}
            return (*self._aside, *(hit for hit in passing if hit.chunk_id not in known))
        self._aside = passing if tier is Tier.STRUCTURE else self._aside
        return ()
