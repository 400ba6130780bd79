"""Merging rankings, and bringing scores of different kinds onto one scale."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from retrieval.engine.types import ChunkId, Hit, Ranking, ScoreType


def variant_leg(leg: str, number: int) -> str:
    """Return the name of a leg's ranking for a rephrased question, such as "dense_2"."""
    return f"{leg}_{number}"


def leg_of(ranking: str) -> str:
    """Return the leg of a ranking: "dense" for "dense" and "dense_2"."""
    leg, _, number = ranking.rpartition("_")
    return leg if number.isdecimal() else ranking


def reciprocal_rank_fusion(rankings: Mapping[str, Ranking], *, rank_constant: int) -> Ranking:
    """Score each chunk by the sum of 1 / (rank_constant + rank) over the rankings that hold it.

    Ranks start at 1. Ties go to the lower chunk id. A fused hit keeps the signals of every leg that found
    it, and its rank in each. Cormack, Clarke and Büttcher, SIGIR 2009.
    """
    # Ranks and signals by chunk.
    found: dict[ChunkId, tuple[dict[str, int], dict[str, float]]] = {}
    for leg, ranking in rankings.items():
        for rank, hit in enumerate(ranking, start=1):
            known = found.get(hit.chunk_id)
            if known is None:
                found[hit.chunk_id] = {leg: rank}, {**hit.signals}
            else:
                known[0][leg] = rank
                known[1].update(hit.signals)
    fused = []
    for chunk_id, (ranks, signals) in found.items():
        signals["rrf"] = score = sum([1 / (rank_constant + rank) for rank in ranks.values()])
        fused.append(Hit(chunk_id, score, ScoreType.RRF, ranks, signals))
    return tuple(sorted(fused, key=best_first))


def weighted_rank_fusion(
    rankings: Mapping[str, Ranking], weights: Mapping[str, float], *, rank_constant: int
) -> Ranking:
    """Score each chunk by the sum of weight / (rank_constant + rank) over the rankings that hold it.

    A leg without a weight is ignored. Equal weights give the order of `reciprocal_rank_fusion`.
    """

    def weighted(hit: Hit) -> Hit:
        score = sum(weights.get(leg, 0.0) / (rank_constant + rank) for leg, rank in hit.ranks.items())
        return replace(hit, score=score, signals={**hit.signals, "rrf": score})

    fused = reciprocal_rank_fusion(rankings, rank_constant=rank_constant)
    return tuple(sorted(map(weighted, fused), key=best_first))


def best_first(hit: Hit) -> tuple[float, ChunkId]:
    """Sort key: the higher score first, the lower chunk id among equals."""
    return (-hit.score, hit.chunk_id)


def min_max(values: Sequence[float], *, min_span: float = 0.0) -> list[float]:
    """Map values linearly so that the minimum is 0 and the maximum 1; all equal, all 0.

    A range below `min_span` counts as that wide, so that meaningless differences are not enlarged.
    """
    if not values:
        return []
    low = min(values)
    span = max(max(values) - low, min_span)
    return [(value - low) / span if span > 0 else 0.0 for value in values]


def min_max_known(values: list[float | None], *, min_span: float = 0.0) -> list[float | None]:
    """Map the known values linearly, so that the lowest is 0 and the highest 1; where all are equal, all are 0."""
    mapped = iter(min_max([value for value in values if value is not None], min_span=min_span))
    return [None if value is None else next(mapped) for value in values]


def normalised(hits: Ranking, signal: str, *, min_span: float = 0.0) -> list[float | None]:
    """Return a signal of each hit, mapped as `min_max_known` does; None for a hit without it."""
    return min_max_known([hit.signals.get(signal) for hit in hits], min_span=min_span)
