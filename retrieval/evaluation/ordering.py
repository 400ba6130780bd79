"""What ordered a hit, in a word. Pure."""

from collections.abc import Mapping
from typing import Final

from retrieval.engine.types import Hit, ScoreType

_MODEL: Final = "model"
_RERANKER: Final = "reranker"
_BY_SCORE: Final[Mapping[ScoreType, str]] = {
    ScoreType.RUBRIC: _MODEL,
    ScoreType.LOGIT: _RERANKER,
    ScoreType.RELEVANCE: _RERANKER,
    ScoreType.MAXSIM: _RERANKER,
}


def ordering(hit: Hit) -> str:
    """Return "model" for what a language model judged, "reranker", or what the score is: "blend", "signals", "rrf"."""
    if hit.score_type is ScoreType.MAPPED:
        return _RERANKER if "rerank" in hit.signals else ScoreType.BLEND.value
    return _BY_SCORE.get(hit.score_type, hit.score_type.value)
