"""The preset `consolidated`: evidence for a section, in phases, within a deadline."""

from typing import Final

from retrieval.encoders.cosine_scale import CosineScale
from retrieval.encoders.model_calls import timed
from retrieval.encoders.reranker import without_breaker
from retrieval.engine.pipeline import Legs, Stage
from retrieval.presets.consolidated.config import ConsolidatedConfig
from retrieval.presets.consolidated.evidence.phases import Phase, PhasedPipeline
from retrieval.presets.consolidated.evidence.rerank_guard import RerankFigures, RerankGuards
from retrieval.presets.consolidated.recovery_tiers import RecoveryTiers
from retrieval.presets.consolidated.stages.chunk_retry import RetryChunks
from retrieval.presets.consolidated.stages.fairness import BalanceSources
from retrieval.presets.consolidated.stages.floors import SectionFloors
from retrieval.presets.consolidated.stages.fuse import FuseWeighted
from retrieval.presets.consolidated.stages.precedence import PreferSources
from retrieval.presets.consolidated.stages.protect import Protect
from retrieval.presets.consolidated.stages.quota import CutWithQuota
from retrieval.presets.consolidated.stages.recovery import Recover
from retrieval.presets.consolidated.stages.rerank import CrossEncoding, RerankSection
from retrieval.presets.consolidated.stages.setup import SetUpSection
from retrieval.presets.consolidated.stages.sources import RecoverSources
from retrieval.presets.consolidated.stages.structure import RouteStructure
from retrieval.presets.consolidated.stages.tighten import TightenPool
from retrieval.presets.consolidated.stages.validate import ValidateScope
from retrieval.presets.preset import Preset
from retrieval.stages.access import CheckAccess
from retrieval.stages.analyze import Analyze, Corrector
from retrieval.stages.answerability import EstimateAnswerability
from retrieval.stages.assemble import Assemble
from retrieval.stages.bm25 import Bm25
from retrieval.stages.complete import Complete
from retrieval.stages.dedupe import Dedupe
from retrieval.stages.dense import Dense
from retrieval.stages.embed import Embed
from retrieval.stages.freshness import Freshness
from retrieval.stages.fulltext import Fulltext
from retrieval.stages.resources import Resources

_VECTORS_SHARE: Final = 0.5  #: Share of a leg's time for the vectors, so that the text hits can still be read.


def build_consolidated(config: ConsolidatedConfig, resources: Resources) -> PhasedPipeline:
    """Return the pipeline: over-fetched, balanced, recovered and reranked evidence for a section."""
    guards = resources.part(RerankGuards) or RerankGuards()
    cross, scale = None, resources.scale(resources.scale_seconds)
    if resources.reranker is not None:
        reranker = without_breaker(resources.reranker)
        guard = guards.guard(reranker, config.breaker, config.rerank)
        cross = CrossEncoding(timed(reranker, resources.calls, breaks=False), guard, resources.rerank_executor)
    search, quota = _search(config, resources), CutWithQuota(config.quota, config.grades)
    tiers = RecoveryTiers(
        search=search,
        words=(Bm25(config.bm25, resources.bm25, resources.text_search_config), Fulltext(config.fulltext)),
        dense=config.dense,
        fulltext=config.fulltext,
        fusion=config.fusion,
        index=resources.index,
        other_indexes=resources.other_indexes,
    )
    primary = (*search, SectionFloors(config.grades, config.density, cross.guard if cross else None, scale), quota)
    setup = (
        Analyze(resources.text_search_config, corrector=Corrector.of(resources)),
        Embed(resources.encoder, resources.query_cache, calls=resources.calls),
        SetUpSection(config.question, config.depth),
    )
    packing = (
        Assemble(config.assemble, resources.count_tokens),
        EstimateAnswerability.of(config.answerability, resources, "consolidated"),
    )
    return PhasedPipeline.of(
        (
            Phase("setup", setup),
            Phase("validation", (ValidateScope(),)),
            Phase("structural_routing", (RouteStructure(config.structure),) if config.structure.headings else ()),
            Phase("primary", primary),
            Phase("chunk_retry", (RetryChunks(config.retry, primary),)),
            Phase("recovery", (Recover(config.cascade, tiers, quota, resources.admission, scale),)),
            Phase("assembly", _assembly(config, resources, guards.figures, cross, scale)),
            Phase("packing", packing, is_closing=True),
        )
    )


def _search(config: ConsolidatedConfig, resources: Resources) -> tuple[Stage, ...]:
    return (
        Legs(
            (
                Dense(config.dense, resources.index, _VECTORS_SHARE, files=resources.vectors),
                Bm25(
                    config.bm25,
                    resources.bm25,
                    resources.text_search_config,
                    Fulltext(config.fulltext),
                    only_without_vector=True,
                ),
            ),
            resources.executor,
        ),
        FuseWeighted(config.fusion, config.primary),
        Complete(config.fulltext, resources.index, in_time=True),
        CheckAccess(),
    )


def _assembly(
    config: ConsolidatedConfig,
    resources: Resources,
    figures: RerankFigures,
    cross: CrossEncoding | None,
    scale: CosineScale,
) -> tuple[Stage, ...]:
    return (
        RecoverSources(
            config.sources,
            resources.index,
            (Complete(config.fulltext, resources.index, in_time=True), CheckAccess()),
            resources.admission,
        ),
        Freshness(),
        Dedupe(config.dedupe),
        TightenPool(cross.guard if cross else None, figures, scale),
        RerankSection(config.rerank, config.semantic_bm25, cross, figures),
        PreferSources(config.precedence),
        BalanceSources(config.fairness),
        Protect(config.sources),
    )


CONSOLIDATED: Final = Preset(
    "consolidated",
    "Evidence for the sections of a report: from every required source type, within a deadline.",
    ConsolidatedConfig(),
    build_consolidated,
    ("dense", "bm25"),
)
