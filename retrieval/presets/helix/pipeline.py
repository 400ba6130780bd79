"""The preset `helix`: several signals on the CPU alone."""

from collections.abc import Callable
from concurrent.futures import Executor
from typing import Final

from retrieval.engine.pipeline import Legs, Pipeline
from retrieval.presets.helix.config import HelixConfig
from retrieval.presets.helix.optional_rerank import QueuedTier, optional_rerank
from retrieval.presets.helix.router.routes import Router, RouterSource
from retrieval.presets.helix.stages.diversify import Diversify
from retrieval.presets.helix.stages.expand import Expand
from retrieval.presets.helix.stages.names import LinkEntities
from retrieval.presets.helix.stages.near_duplicates import NearDuplicates
from retrieval.presets.helix.stages.pack import Pack
from retrieval.presets.helix.stages.route import Route
from retrieval.presets.helix.stages.signals import RankSignals
from retrieval.presets.helix.stages.sparse import Sparse
from retrieval.presets.preset import Preset
from retrieval.stages.access import CheckAccess
from retrieval.stages.analyze import Analyze, Corrector
from retrieval.stages.answerability import EstimateAnswerability
from retrieval.stages.bm25 import Bm25
from retrieval.stages.complete import Complete, PrefetchPool
from retrieval.stages.dense import FILES, Dense
from retrieval.stages.embed import Embed
from retrieval.stages.fulltext import Fulltext
from retrieval.stages.fuse import Fuse
from retrieval.stages.prefetch import PrefetchTerms
from retrieval.stages.quality import Quality
from retrieval.stages.rerank import Rerank
from retrieval.stages.resources import Resources


def build_helix(config: HelixConfig, resources: Resources) -> Pipeline:
    """Return CPU-only retrieval: routed, fused, ranked by several signals, diversified, packed outside-in.

    No stage uses a language model or a remote service, not even for embeddings. Only the tier "async" may use a
    reranking service.
    """
    again = Embed(resources.local_encoder, resources.query_cache, calls=resources.calls)
    analyze = Analyze(resources.text_search_config, corrector=Corrector.of(resources, again))
    complete = Complete(config.fulltext, resources.index, with_vectors=True)
    route = Route(config.route, local_router(resources))
    model, pool = resources.local_encoder, PrefetchPool(complete, resources.executor)
    names = (
        (LinkEntities(config.graph, model, resources.text_search_config, resources.query_cache, resources.calls),)
        if model
        else ()
    )
    links = (Expand(config.graph, resources.index, it, pool) for it in names)
    dense = Dense(config.dense, resources.index, files=resources.vectors)
    ahead = tuple(prefetch_question(analyze, route, dense, it, resources.executor) for it in names)
    return Pipeline(
        (
            Embed(resources.local_encoder, resources.query_cache, ahead, resources.calls),
            analyze,
            route,
            Legs(
                (
                    dense,
                    Bm25(config.bm25, resources.bm25, resources.text_search_config, Fulltext(config.fulltext)),
                    *sparse_legs(config, resources),
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
            *rerank_stage(config, resources),
            NearDuplicates(config.near_duplicates),
            Diversify(config.diversify),
            Pack(config.pack, resources.count_tokens),
            EstimateAnswerability.of(config.answerability, resources, "helix"),
        )
    )


def prefetch_question(
    analyze: Analyze, route: Route, dense: Dense, names: LinkEntities, executor: Executor
) -> PrefetchTerms:
    """Return what reads terms, projects, changed documents and the names in a question, as stages wait for them."""
    return PrefetchTerms(
        analyze, executor, {route.name: route.projects, FILES: dense.open_files, names.name: names.read}
    )


def sparse_legs(config: HelixConfig, resources: Resources) -> tuple[Sparse, ...]:
    """Return the sparse leg in a tuple; empty without a sparse model."""
    if resources.sparse is None or not config.sparse.depth:
        return ()
    return (Sparse(config.sparse, resources.sparse, resources.calls),)


def rerank_stage(config: HelixConfig, resources: Resources) -> tuple[Rerank, ...]:
    """Return the optional reranker in a tuple; empty for none."""
    is_queued = resources.part(QueuedTier) is not None
    return optional_rerank(config.rerank, resources.reranker, resources.calls, is_queued=is_queued)


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
