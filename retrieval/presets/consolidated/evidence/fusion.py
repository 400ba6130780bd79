"""Fusing the primary pool by weighted ranks."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final

from retrieval.engine.types import Hit, Ranking
from retrieval.ranking.fusion import best_first, reciprocal_rank_fusion

#: Suffix of a ranking of a rephrasing.
_VARIANT: Final = re.compile(r"_\d+$")


def leg_weights(sparse_weight: float) -> dict[str, float]:
    """Return the weight of each leg: `sparse_weight` for bm25, the rest of 1 for dense."""
    return {"dense": 1 - sparse_weight, "bm25": sparse_weight}


def ranking_weights(names: Iterable[str], sparse_weight: float) -> dict[str, float]:
    """Return the weight of each ranking: that of its leg, also for a rephrasing ("dense_2")."""
    of_leg = leg_weights(sparse_weight)
    return {name: of_leg.get(_VARIANT.sub("", name), 0.0) for name in names}


def weighted_rank_fusion(
    rankings: Mapping[str, Ranking], weights: Mapping[str, float], *, rank_constant: int
) -> Ranking:
    """Score each chunk by the sum of weight / (rank_constant + rank) over the rankings that hold it.

    Ranks start at 1, ties go to the lower chunk id, a leg without a weight is ignored. Equal weights give the
    order of `reciprocal_rank_fusion`.
    """

    def weighted(hit: Hit) -> Hit:
        score = sum(weights.get(leg, 0.0) / (rank_constant + rank) for leg, rank in hit.ranks.items())
        return replace(hit, score=score, signals={**hit.signals, "rrf": score})

    fused = reciprocal_rank_fusion(rankings, rank_constant=rank_constant)
    return tuple(sorted(map(weighted, fused), key=best_first))
