"""One fused score of 0 to 1 for every chunk that a leg found: what links are added to. Pure."""

from collections.abc import Mapping
from typing import Final

from retrieval.types import ChunkId, Ranking

#: What the vectors' ranking counts beside the words'.
_DENSE_SHARE: Final = 0.6
_DENSE: Final = "dense"


def fused_scores(rankings: Mapping[str, Ranking]) -> dict[ChunkId, float]:
    """Return 0.6 of the cosine plus 0.4 of the words' score, each min-max-normalised within its leg's ranking.

    A chunk that a leg did not find has its least there, 0. Where one leg found nothing the other counts in full.
    """
    found = {leg: ranking for leg, ranking in rankings.items() if ranking}
    shares = _shares(found)
    scores: dict[ChunkId, float] = {}
    for leg, ranking in found.items():
        lowest, highest = min(hit.score for hit in ranking), max(hit.score for hit in ranking)
        for hit in ranking:
            part = (hit.score - lowest) / (highest - lowest) if highest > lowest else 1.0
            scores[hit.chunk_id] = scores.get(hit.chunk_id, 0.0) + shares[leg] * part
    return scores


def _shares(rankings: Mapping[str, Ranking]) -> dict[str, float]:
    words = [leg for leg in rankings if leg != _DENSE]
    if _DENSE not in rankings:
        return {leg: 1.0 / len(words) for leg in words}
    if not words:
        return {_DENSE: 1.0}
    return {_DENSE: _DENSE_SHARE} | {leg: (1.0 - _DENSE_SHARE) / len(words) for leg in words}
