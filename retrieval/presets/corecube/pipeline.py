"""The preset `corecube`: governed hybrid search."""

from typing import Final

from retrieval.engine.pipeline import Legs, Pipeline
from retrieval.presets.corecube.config import CorecubeConfig
from retrieval.presets.preset import Preset
from retrieval.stages.access import CheckAccess
from retrieval.stages.analyze import Analyze, Corrector
from retrieval.stages.answerability import EstimateAnswerability
from retrieval.stages.assemble import Assemble
from retrieval.stages.blend import Blend
from retrieval.stages.complete import Complete
from retrieval.stages.dedupe import Dedupe
from retrieval.stages.dense import FILES, Dense
from retrieval.stages.embed import Embed
from retrieval.stages.floor import Floor
from retrieval.stages.freshness import Freshness
from retrieval.stages.fulltext import Fulltext
from retrieval.stages.fuse import Fuse
from retrieval.stages.prefetch import Prefetch, PrefetchTerms
from retrieval.stages.quality import Quality
from retrieval.stages.rerank import Rerank, reading_ahead
from retrieval.stages.resources import Resources
from retrieval.stages.ties import BreakTies


def build_corecube(config: CorecubeConfig, resources: Resources) -> Pipeline:
    """Return governed hybrid search: full text and vectors, RRF into a pool, a blend to order it."""
    reranker = resources.timed_reranker
    again = Embed(resources.encoder, resources.query_cache, calls=resources.calls)
    analyze = Analyze(resources.text_search_config, corrector=Corrector.of(resources, again))
    dense = Dense(config.dense, resources.index, files=resources.vectors)
    fulltext = Fulltext(config.fulltext, resources.bm25, resources.text_search_config)
    ahead: tuple[Prefetch, ...] = (
        PrefetchTerms(analyze, resources.executor, {FILES: dense.open_files}, (fulltext,)),
        *reading_ahead(reranker, resources.executor),
    )
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
            Rerank(config.rerank, reranker),
            BreakTies(config.ties),
            Floor(config.floor),
            Dedupe(config.dedupe),
            Assemble(config.assemble, resources.count_tokens),
            EstimateAnswerability.of(config.answerability, resources, "corecube"),
        )
    )


CORECUBE: Final = Preset(
    "corecube",
    "Hybrid search with access control: full text and vectors, fused and blended.",
    CorecubeConfig(),
    build_corecube,
    ("dense", "fulltext"),
)
