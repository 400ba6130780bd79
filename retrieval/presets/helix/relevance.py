"""One fused score of 0 to 1 for every chunk that a leg found: what links are added to. Pure."""

from collections.abc import Mapping
from typing import Final

from retrieval.engine.types import ChunkId, Ranking
from retrieval.ranking.fusion import leg_of

#: What the vectors' ranking counts beside the words'.
_DENSE_SHARE: Final = 0.6
_DENSE: Final = "dense"


def fused_scores(rankings: Mapping[str, Ranking]) -> dict[ChunkId, float]:
    """Return 0.6 of the cosine plus 0.4 of the words' score, each min-max-normalised within its leg's ranking.

    A chunk that a leg did not find has its least there, 0. Where one side found nothing the other counts in full.
    Several rankings of a side, such as those of other ways to put the question, share its part equally.
    """
    found = {leg: ranking for leg, ranking in rankings.items() if ranking}
    vectors = [leg for leg in found if leg_of(leg) == _DENSE]
    words = [leg for leg in found if leg_of(leg) != _DENSE]
    share = _DENSE_SHARE if words and vectors else float(bool(vectors))
    shares = dict.fromkeys(vectors, share / max(1, len(vectors)))
    shares |= dict.fromkeys(words, (1.0 - share) / max(1, len(words)))
    scores: dict[ChunkId, float] = {}
    for leg, ranking in found.items():
        lowest, highest = min(hit.score for hit in ranking), max(hit.score for hit in ranking)
        for hit in ranking:
            part = (hit.score - lowest) / (highest - lowest) if highest > lowest else 1.0
            scores[hit.chunk_id] = scores.get(hit.chunk_id, 0.0) + shares[leg] * part
    return scores
