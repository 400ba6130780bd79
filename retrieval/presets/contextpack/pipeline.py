"""The preset `contextpack`: candidates scored by a language model, with their neighbours."""

from typing import Final

from retrieval.engine.pipeline import Legs, Pipeline
from retrieval.presets.contextpack.config import ContextPackConfig
from retrieval.presets.contextpack.judge import Judge
from retrieval.presets.contextpack.stages.judge_relevance import JudgeRelevance
from retrieval.presets.contextpack.stages.neighbours import Neighbours
from retrieval.presets.contextpack.stages.pack_context import PackContext
from retrieval.presets.preset import Preset
from retrieval.stages.access import CheckAccess
from retrieval.stages.analyze import Analyze, Corrector
from retrieval.stages.answerability import EstimateAnswerability
from retrieval.stages.blend import Blend
from retrieval.stages.complete import Complete
from retrieval.stages.dedupe import Dedupe
from retrieval.stages.dense import FILES, Dense
from retrieval.stages.embed import Embed
from retrieval.stages.freshness import Freshness
from retrieval.stages.fulltext import Fulltext
from retrieval.stages.fuse import Fuse
from retrieval.stages.prefetch import PrefetchTerms
from retrieval.stages.quality import Quality
from retrieval.stages.resources import Resources


def build_contextpack(config: ContextPackConfig, resources: Resources) -> Pipeline:
    """Return the pipeline for context packs: scored by a language model, with neighbours of the best hits."""
    judge = resources.part(Judge)
    again = Embed(resources.encoder, resources.query_cache, calls=resources.calls)
    analyze = Analyze(resources.text_search_config, corrector=Corrector.of(resources, again))
    dense = Dense(config.dense, resources.index, files=resources.vectors)
    fulltext = Fulltext(config.fulltext, resources.bm25, resources.text_search_config)
    ahead = (PrefetchTerms(analyze, resources.executor, {FILES: dense.open_files}, (fulltext,)),)
    return Pipeline(
        (
            Embed(resources.encoder, resources.query_cache, ahead, resources.calls),
            analyze,
            Legs((dense, fulltext), resources.executor),
            Fuse(config.fusion),
            Complete(config.fulltext, resources.index),
            CheckAccess(),
            Freshness(),
            Quality(config.quality),
            Blend(config.blend),
            Dedupe(config.dedupe, config.relevance.candidates),
            JudgeRelevance(config.relevance, config.blend, judge.ask if judge else None, resources.timed_reranker),
            Neighbours(config.neighbours, config.relevance.top, config.quality.minimum),
            PackContext(config.context, config.relevance.top, resources.answerer_counter, resources.own_counter),
            EstimateAnswerability.of(config.answerability, resources, "contextpack"),
        )
    )


CONTEXTPACK: Final = Preset(
    "contextpack",
    "Graded by a language model, and packed with sections and neighbouring chunks within a token budget.",
    ContextPackConfig(),
    build_contextpack,
    ("dense", "fulltext"),
)
