"""The reference version of the preset `contextpack`."""

from dataclasses import replace
from typing import Final

from retrieval.engine.pipeline import Legs, Pipeline
from retrieval.presets.contextpack.config import ContextPackConfig
from retrieval.presets.contextpack.judge import Judge
from retrieval.presets.contextpack.pipeline import CONTEXTPACK
from retrieval.presets.contextpack.stages.candidates import Candidates
from retrieval.presets.contextpack.stages.judge_relevance import JudgeRelevance
from retrieval.presets.contextpack.stages.neighbours import Neighbours
from retrieval.presets.contextpack.stages.pack_context import PackContext
from retrieval.presets.reference import reference_version
from retrieval.stages.access import CheckAccess
from retrieval.stages.analyze import Analyze
from retrieval.stages.answerability import EstimateAnswerability
from retrieval.stages.complete import Complete
from retrieval.stages.dense import Dense
from retrieval.stages.embed import Embed
from retrieval.stages.resources import Resources


def build_contextpack_reference(config: ContextPackConfig, resources: Resources) -> Pipeline:
    """Return the document's stages: vectors alone find the candidates, a language model ranks them."""
    judge = resources.part(Judge)
    ask = judge.ask if judge else None
    return Pipeline(
        (
            Analyze(resources.text_search_config),
            Embed(resources.encoder, resources.query_cache, calls=resources.calls),
            Legs((Dense(config.dense, resources.index, files=resources.vectors),), resources.executor),
            Candidates(),
            Complete(config.fulltext, resources.index),
            CheckAccess(),
            JudgeRelevance(config.relevance, config.blend, ask, reranker=None, judged_only=True),
            Neighbours(config.neighbours, config.relevance.top, min_quality=0.0),
            PackContext(config.context, config.relevance.top, resources.answerer_counter, resources.own_counter),
            EstimateAnswerability.of(config.answerability, resources, CONTEXTPACK.name),
        )
    )


CONTEXTPACK_REFERENCE: Final = replace(
    reference_version(
        CONTEXTPACK,
        "As published, before CoreCube improved it: vectors alone find 100 candidates, and gpt-4o ranks 50 of them.",
        build=build_contextpack_reference,
        legs=("dense",),
    ),
    defaults=ContextPackConfig.reference(),
)
