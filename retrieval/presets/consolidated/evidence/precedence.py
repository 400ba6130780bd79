"""Breaking near-ties by source type: boosts too small to overturn a significant lead."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Final

from retrieval.engine.tunables import Tunables, tunable
from retrieval.engine.types import Hit, Ranking
from retrieval.ranking.blend import on_unit_scale

PRECEDENCE: Final = "precedence"


@dataclass(frozen=True, slots=True, kw_only=True)
class PrecedenceConfig(Tunables):
    """What a source type's precedence adds to a reranked score."""

    label: ClassVar[str] = "Precedence"

    limit: float = tunable(
        0.004,
        low=0.0,
        high=0.05,
        help="Boost of the first source type; the last gets none, the others evenly spaced values.",
        at_most="min_margin",
    )
    min_margin: float = tunable(0.005, low=0.0, high=0.05, help="Minimum difference of reranker scores that counts.")
    fallback_share: float = tunable(
        0.5, low=0.0, high=1.0, help="Share of the boost if the fallback scored, whose scores are smaller."
    )


def boosts(precedence: Sequence[str], *, is_fallback: bool, config: PrecedenceConfig) -> dict[str, float]:
    """Return the boost of each source type, most trusted first: evenly from `limit` down to 0.

    The smaller scores of the fallback get `fallback_share` of it.
    """
    limit = config.limit * (config.fallback_share if is_fallback else 1.0)
    steps = max(1, len(precedence) - 1)
    return {name: limit * (len(precedence) - 1 - place) / steps for place, name in enumerate(precedence)}


def by_precedence(hits: Ranking, boost_of: Callable[[Hit], float | None]) -> Ranking:
    """Return hits ordered by score plus boost; the boost becomes a signal, the score does not change.

    Scores are compared on the unit scale: a logit by its logistic function. Ties keep their order. A lead larger than
    the maximum boost is never overturned. Hits whose boost is None rank last in their order.
    """
    boosts_of = [(hit, boost_of(hit)) for hit in hits]
    boosted = [replace(hit, signals={**hit.signals, PRECEDENCE: it}) for hit, it in boosts_of if it is not None]
    boosted.sort(key=lambda hit: -(on_unit_scale(hit) + hit.signals[PRECEDENCE]))
    return (*boosted, *(hit for hit, it in boosts_of if it is None))
