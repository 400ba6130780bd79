"""The preset `helix`: several signals on the CPU alone."""

from collections.abc import Callable
from typing import Final

from retrieval.engine.pipeline import Legs, Pipeline, Stage
from retrieval.presets.helix.config import HelixConfig
from retrieval.presets.helix.expansion import GraphConfig
from retrieval.presets.helix.optional_rerank import optional_rerank
from retrieval.presets.helix.prefetch_question import PrefetchQuestion
from retrieval.presets.helix.router.routes import Router, RouterSource
from retrieval.presets.helix.stages.diversify import Diversify
from retrieval.presets.helix.stages.expand import Expand
from retrieval.presets.helix.stages.names import LinkEntities
from retrieval.presets.helix.stages.near_duplicates import NearDuplicates
from retrieval.presets.helix.stages.pack import Pack
from retrieval.presets.helix.stages.route import Route
from retrieval.presets.helix.stages.signals import RankSignals
from retrieval.presets.helix.stages.sparse import sparse_leg
from retrieval.presets.preset import Preset
from retrieval.stages.access import CheckAccess
from retrieval.stages.analyze import Analyze
from retrieval.stages.answerability import EstimateAnswerability
from retrieval.stages.bm25 import Bm25
from retrieval.stages.complete import Complete, PrefetchPool
from retrieval.stages.dense import Dense
from retrieval.stages.embed import Embed
from retrieval.stages.fulltext import Fulltext
from retrieval.stages.fuse import Fuse
from retrieval.stages.quality import Quality
from retrieval.stages.resources import Resources


def build_helix(config: HelixConfig, resources: Resources) -> Pipeline:
    """Return CPU-only retrieval: routed, fused, ranked by several signals, diversified, packed outside-in.

    No stage uses a language model or a remote service, not even for embeddings.
    """
    analyze = Analyze(resources.text_search_config)
    complete = Complete(config.fulltext, resources.index, with_vectors=True)
    names, links = _links(config.graph, resources, PrefetchPool(complete, resources.executor))
    route = Route(config.route, local_router(resources))
    ahead = next((PrefetchQuestion(analyze, route, it, resources.executor) for it in names), None)
    return Pipeline(
        (
            Embed(resources.local_encoder, resources.query_cache, ahead, resources.calls),
            analyze,
            route,
            Legs(
                (
                    Dense(config.dense, resources.index),
                    Bm25(config.bm25, resources.bm25, resources.text_search_config, Fulltext(config.fulltext)),
                    *sparse_leg(config.sparse, resources.sparse, resources.calls),
                ),
                resources.executor,
                names,
            ),
            Fuse(config.fusion),
            *links,
            complete,
            CheckAccess(),
            Quality(config.quality),
            RankSignals(config.signals),
            *optional_rerank(config.rerank, resources.reranker, resources.calls),
            NearDuplicates(config.near_duplicates),
            Diversify(config.diversify),
            Pack(config.pack, resources.count_tokens),
            EstimateAnswerability.of(config.answerability, resources, "helix"),
        )
    )


def _links(
    config: GraphConfig, resources: Resources, pool: PrefetchPool
) -> tuple[tuple[LinkEntities, ...], tuple[Stage, ...]]:
    """Return the stage that looks up names in parallel with the legs, and the stage that follows links.

    None of them where the embedding model is a remote service.
    """
    model = resources.local_encoder
    if model is None:
        return (), ()
    names = LinkEntities(config, model, resources.query_cache, resources.calls)
    return (names,), (Expand(config, resources.index, names, pool),)


def local_router(resources: Resources) -> Callable[[], Router | None]:
    """Return the router's source if the model runs in this process; else one that returns None."""
    source = resources.part(RouterSource)
    return source.get if source and resources.local_encoder else lambda: None


HELIX: Final = Preset(
    "helix",
    "Fast search for agents on CPU only: routed, ranked by memory type, diversified; no language model.",
    HelixConfig(),
    build_helix,
    ("dense", "bm25"),
)
