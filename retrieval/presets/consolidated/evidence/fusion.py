"""Fusing the primary pool: vectors and words by rank, the vectors counting for more."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final

from retrieval.engine.types import Hit, Ranking
from retrieval.ranking.fusion import best_first, reciprocal_rank_fusion

#: What a ranking's name ends with where a leg searched for another way to put the question.
_VARIANT: Final = re.compile(r"_\d+$")


def leg_weights(sparse_weight: float) -> dict[str, float]:
    """Return what a rank in each leg counts: `sparse_weight` for bm25, the rest of 1 for dense."""
    return {"dense": 1 - sparse_weight, "bm25": sparse_weight}


def ranking_weights(names: Iterable[str], sparse_weight: float) -> dict[str, float]:
    """Return what a rank in each ranking counts: as in its leg, also where that searched for a variant ("dense_2")."""
    of_leg = leg_weights(sparse_weight)
    return {name: of_leg.get(_VARIANT.sub("", name), 0.0) for name in names}


def weighted_rank_fusion(
    rankings: Mapping[str, Ranking], weights: Mapping[str, float], *, rank_constant: int
) -> Ranking:
    """Score each chunk by the sum of weight / (rank_constant + rank) over the rankings that hold it.

    Ranks start at 1, ties go to the lower chunk id, a leg without a weight counts nothing. Otherwise as
    `reciprocal_rank_fusion`, whose order equal weights give.
    """

    def weighted(hit: Hit) -> Hit:
        score = sum(weights.get(leg, 0.0) / (rank_constant + rank) for leg, rank in hit.ranks.items())
        return replace(hit, score=score, signals={**hit.signals, "rrf": score})

    fused = reciprocal_rank_fusion(rankings, rank_constant=rank_constant)
    return tuple(sorted(map(weighted, fused), key=best_first))
