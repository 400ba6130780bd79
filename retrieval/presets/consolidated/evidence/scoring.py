"""Fusing the primary pool by weighted ranks, and the fallback without a cross-encoder: weighted cosine and BM25."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Final

from corecube.errors import ConfigError
from retrieval.engine.tunables import Tunables, fraction, tunable
from retrieval.engine.types import Hit, Ranking, ScoreType
from retrieval.presets.consolidated.evidence.rerank_plan import Provider
from retrieval.ranking.fusion import best_first, reciprocal_rank_fusion

_VARIANT: Final = re.compile(r"_\d+$")  #: Suffix of a ranking of a rephrasing.
_SEMANTIC: Final = "cosine"


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


@dataclass(frozen=True, slots=True, kw_only=True)
class SemanticBm25Config(Tunables):
    """Weights of similarity and BM25 in the fallback; they are normalised to a sum of 1."""

    label: ClassVar[str] = "SemanticBM25"

    semantic: float = tunable(0.7, low=0.05, high=1.0, help="Weight of the cosine.")
    bm25: float = fraction(0.3, help="Weight of BM25, as a share of the pool's best.")


def semantic_bm25(hits: Ranking, config: SemanticBm25Config, *, lexical: str = "bm25") -> Ranking:
    """Return hits by weighted cosine and BM25 over the sum of the weights, best first, 0 to 1.

    Negative cosines count as 0, BM25 is a share of the pool's best. A missing signal counts as 0; one that no hit has
    gets no weight. Without either every hit scores 0. `lexical` names the text signal. Raises ConfigError if both
    weights are 0.
    """
    if config.semantic + config.bm25 == 0:
        raise ConfigError("The fallback's weights must not both be 0.")
    best = max((hit.signals.get(lexical, 0.0) for hit in hits), default=0.0)
    weights = {
        "semantic": config.semantic if any(_SEMANTIC in hit.signals for hit in hits) else 0.0,
        "bm25": config.bm25 if best > 0 else 0.0,
    }
    total = sum(weights.values())
    scored = []
    for hit in hits:
        parts = {
            "semantic": _share(weights["semantic"], total) * min(1.0, max(0.0, hit.signals.get(_SEMANTIC, 0.0))),
            "bm25": _share(weights["bm25"], total) * _share(max(0.0, hit.signals.get(lexical, 0.0)), best),
        }
        found = hit.scored(sum(parts.values()), ScoreType.BLEND, parts)
        signals = {**hit.signals, "pooled": hit.score}
        scored.append(replace(found, signals=signals, provider=Provider.SEMANTIC_BM25))
    return tuple(sorted(scored, key=best_first))


def _share(part: float, whole: float) -> float:
    return part / whole if whole > 0 else 0.0
