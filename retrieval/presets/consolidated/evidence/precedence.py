"""The tiebreaker by source type: boosts too small to turn a lead that means something."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from retrieval.engine.types import Hit, Ranking
from retrieval.presets.consolidated.evidence.config import PrecedenceConfig
from retrieval.ranking.blend import on_unit_scale

#: The signal that holds a hit's boost.
PRECEDENCE: Final = "precedence"


def boosts(precedence: Sequence[str], *, is_fallback: bool, config: PrecedenceConfig) -> dict[str, float]:
    """Return what each source type's hits get, the most believed first; evenly from `most` down to 0 for the last.

    Where the fallback scored, its smaller scores get `fallback_share` of it.
    """
    limit = config.limit * (config.fallback_share if is_fallback else 1.0)
    steps = max(1, len(precedence) - 1)
    return {name: limit * (len(precedence) - 1 - place) / steps for place, name in enumerate(precedence)}


def by_precedence(hits: Ranking, boost_of: Callable[[Hit], float | None]) -> Ranking:
    """Return hits in the order of their scores plus boosts, the boost among their signals, the score as it was.

    Scores are compared on a scale where a hundredth is a hundredth: a logit by its logistic function. Ties keep their
    order. A hit that leads by more than the greatest boost is never overtaken. Hits whose boost is None cannot be
    compared; they stand behind the others, as they came.
    """
    boosts_of = [(hit, boost_of(hit)) for hit in hits]
    boosted = [replace(hit, signals={**hit.signals, PRECEDENCE: it}) for hit, it in boosts_of if it is not None]
    return (*sorted(boosted, key=_best_boosted_first), *(hit for hit, it in boosts_of if it is None))


def _best_boosted_first(hit: Hit) -> float:
    return -(on_unit_scale(hit) + hit.signals[PRECEDENCE])
