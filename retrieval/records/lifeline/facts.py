"""What is said of a chunk that a stage let through: its place, and the number that the stage went by."""

from collections.abc import Callable, Mapping
from typing import Final

from retrieval.engine.state import Span
from retrieval.engine.types import Hit, ScoreType
from retrieval.presets.preset import PresetConfig

_Says = Callable[[Hit, PresetConfig], str]


def passing(span: Span, hit: Hit, rank: int, config: PresetConfig) -> str:
    """Return "rank 11 of 30, logit 4.210"; for a stage that is not known here, the place alone."""
    place = f"rank {rank:,} of {len(span.left):,}"
    said = _SAID[span.stage](hit, config) if span.stage in _SAID else ""
    return f"{place}, {said}" if said else place


def _signals(hit: Hit, config: PresetConfig) -> str:  # noqa: ARG001 -- one of several
    names = {ScoreType.COSINE: "cosine", ScoreType.FULLTEXT: "full text"}
    said = (f"{word} {hit.signals[name]:.3f}" for name, word in names.items() if name in hit.signals)
    return ", ".join(said)


def _fused(hit: Hit, config: PresetConfig) -> str:
    pool = "" if "fusion.pool" in config.unused else f", pool {config.fusion.pool:,}"
    return f"RRF {hit.score:.5f}{pool}"


def _fresh(hit: Hit, config: PresetConfig) -> str:  # noqa: ARG001 -- one of several
    return f"{hit.signals['freshness']:.2f} at {hit.signals['age_days']:,.0f} days"


def _quality(hit: Hit, config: PresetConfig) -> str:
    return f"quality {hit.chunk.quality:.2f}, least {config.quality.minimum:.2f}"


def _scored(hit: Hit, config: PresetConfig) -> str:  # noqa: ARG001 -- one of several
    return f"{hit.score_type} {hit.score:.3f}"


def _judged(hit: Hit, config: PresetConfig) -> str:  # noqa: ARG001 -- one of several
    if hit.score_type is ScoreType.RUBRIC:
        answers = "answers the question" if hit.signals["answers"] else "does not answer it by itself"
        return f"{hit.score:.0f} by the rubric, {answers}"
    return f"not judged, {hit.score_type} {hit.score:.3f}"


def _floored(hit: Hit, config: PresetConfig) -> str:
    floor = config.min_score(hit.score_type)
    return f"{hit.score_type} {hit.score:.3f}, " + (f"floor {floor:.3f}" if floor > float("-inf") else "no floor")


_SAID: Final[Mapping[str, _Says]] = {
    "fuse": _fused,
    "complete": _signals,
    "freshness": _fresh,
    "quality": _quality,
    "blend": _scored,
    "signals": _scored,
    "rerank": _scored,
    "judge_relevance": _judged,
    "floor": _floored,
}
