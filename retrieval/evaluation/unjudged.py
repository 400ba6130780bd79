"""Measuring without a language model that judges."""

from retrieval.engine.types import Ranking
from retrieval.errors import NoJudgeError
from retrieval.presets.contextpack.judge import Judge, Judged, RelevanceConfig
from retrieval.stages.resources import Resources


def without_judge(tools: Resources) -> Resources:
    """Return the resources as of an installation without a language model that may judge."""
    return tools.with_part(Judge, Judge(_nobody))


def _nobody(question: str, hits: Ranking, *, config: RelevanceConfig, seconds: float) -> Judged:  # noqa: ARG001 -- the protocol's
    raise NoJudgeError
