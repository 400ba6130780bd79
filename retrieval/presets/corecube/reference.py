"""The reference version of the preset `corecube`."""

from typing import Final

from retrieval.engine.pipeline import Legs, Pipeline
from retrieval.presets.corecube.config import CorecubeConfig
from retrieval.presets.corecube.pipeline import CORECUBE
from retrieval.presets.reference import reference_version
from retrieval.stages.access import CheckAccess
from retrieval.stages.analyze import Analyze
from retrieval.stages.answerability import EstimateAnswerability
from retrieval.stages.assemble import Assemble
from retrieval.stages.blend import Blend
from retrieval.stages.complete import Complete
from retrieval.stages.dedupe import Dedupe
from retrieval.stages.dense import Dense
from retrieval.stages.embed import Embed
from retrieval.stages.floor import Floor
from retrieval.stages.freshness import Freshness
from retrieval.stages.fulltext import Fulltext
from retrieval.stages.fuse import Fuse
from retrieval.stages.quality import Quality
from retrieval.stages.rerank import Rerank
from retrieval.stages.resources import Resources
from retrieval.stages.ties import BreakTies


def build_corecube_reference(config: CorecubeConfig, resources: Resources) -> Pipeline:
    """Return the document's stages: two legs, RRF, then freshness, quality, access and reranker in this order."""
    return Pipeline(
        (
            Analyze(resources.text_search_config, is_websearch=True),
            Embed(resources.encoder, resources.query_cache, calls=resources.calls),
            Legs((Dense(config.dense, resources.index), Fulltext(config.fulltext)), resources.executor),
            Fuse(config.fusion),
            Complete(config.fulltext, resources.index),
            Freshness(since_sync=True),
            Quality(config.quality),
            CheckAccess(),
            Blend(config.blend),
            Rerank(config.rerank, resources.timed_reranker, is_expected=True),
            BreakTies(config.ties),
            Floor(config.floor),
            Dedupe(config.dedupe),
            Assemble(config.assemble, resources.count_tokens),
            EstimateAnswerability.of(config.answerability, resources, CORECUBE.name),
        )
    )


CORECUBE_REFERENCE: Final = reference_version(
    CORECUBE,
    "As published, before CoreCube improved it: ts_rank_cd, fixed weights of 60/30/10, filters in the published order.",
    build=build_corecube_reference,
)
