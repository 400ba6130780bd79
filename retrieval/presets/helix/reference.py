"""The reference version of the preset `helix`."""

from dataclasses import dataclass, field, fields, replace
from typing import ClassVar, Final

from retrieval.engine.pipeline import Legs, Pipeline
from retrieval.presets.helix.config import HelixConfig
from retrieval.presets.helix.expansion import GraphConfig
from retrieval.presets.helix.pipeline import HELIX, local_router, rerank_stage, sparse_legs
from retrieval.presets.helix.stages.associate import Associate, AssociateConfig
from retrieval.presets.helix.stages.diversify import Diversify
from retrieval.presets.helix.stages.near_duplicates import NearDuplicates
from retrieval.presets.helix.stages.pack import Pack
from retrieval.presets.helix.stages.route import Route
from retrieval.presets.helix.stages.signals import RankSignals
from retrieval.presets.reference import reference_version
from retrieval.stages.access import CheckAccess
from retrieval.stages.analyze import Analyze
from retrieval.stages.answerability import EstimateAnswerability
from retrieval.stages.bm25 import Bm25
from retrieval.stages.complete import Complete, PrefetchPool
from retrieval.stages.dense import Dense
from retrieval.stages.embed import Embed
from retrieval.stages.fulltext import Fulltext
from retrieval.stages.fuse import Fuse
from retrieval.stages.resources import Resources


@dataclass(frozen=True, slots=True, kw_only=True)
class HelixReferenceConfig(HelixConfig):
    """The numbers of the preset `helix@reference`, which has neither names of the question nor a quality floor."""

    unused: ClassVar[frozenset[str]] = frozenset(
        {
            "quality.minimum",
            *(f"graph.{item.name}" for item in fields(GraphConfig)),
            *(f"signals.{name}" for name in ("type_share", "dense_share", "sparse_share", "min_cosine_span")),
        }
    )

    associate: AssociateConfig = field(default_factory=AssociateConfig)


def build_helix_reference(config: HelixReferenceConfig, resources: Resources) -> Pipeline:
    """Return the document's eight stages, with the access check, and answerability behind them.

    No stage uses a language model or a remote service; only a queued search may use a reranking service.
    """
    complete = Complete(config.fulltext, resources.index, with_vectors=True)
    bm25 = Bm25(config.bm25, resources.bm25, resources.text_search_config, Fulltext(config.fulltext))
    dense = Dense(config.dense, resources.index, stored_as="int8", files=resources.vectors)
    return Pipeline(
        (
            Embed(resources.local_encoder, resources.query_cache, calls=resources.calls),
            Analyze(resources.text_search_config),
            Route(config.route, local_router(resources)),
            Legs((dense, bm25, *sparse_legs(config, resources)), resources.executor),
            Fuse(config.fusion),
            Associate(config.associate, resources.index, PrefetchPool(complete, resources.executor)),
            complete,
            CheckAccess(),
            RankSignals(config.signals),
            *rerank_stage(config, resources),
            NearDuplicates(config.near_duplicates),
            Diversify(config.diversify),
            Pack(config.pack, resources.count_tokens),
            EstimateAnswerability.of(config.answerability, resources, HELIX.name),
        )
    )


HELIX_REFERENCE: Final = reference_version(
    replace(HELIX, defaults=HelixReferenceConfig()),
    "As published, before CoreCube improved it: PageRank from 100 seeds, weights by type, MMR of all hits.",
    build=build_helix_reference,
)
