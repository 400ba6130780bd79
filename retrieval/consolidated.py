"""The preset `consolidated`: evidence for a section, in phases, under a deadline."""

from retrieval.consolidated_config import ConsolidatedConfig
from retrieval.evidence.phases import Phase, PhasedPipeline
from retrieval.pipeline import Legs, Stage
from retrieval.resources import Resources
from retrieval.stages import (
    Analyze,
    Assemble,
    BalanceSources,
    Bm25,
    CheckAccess,
    Complete,
    CutWithQuota,
    Dedupe,
    Dense,
    Embed,
    Freshness,
    Fulltext,
    FuseWeighted,
    JudgeAnswerability,
    PreferSources,
    Protect,
    Recover,
    RecoverSources,
    RerankSection,
    RetryChunks,
    RouteStructure,
    SectionFloors,
    SetUpSection,
    TightenPool,
    ValidateScope,
)
from retrieval.stages.recovery_tiers import RecoveryTiers
from retrieval.stages.rerank_section import CrossEncoding


def build_consolidated(config: ConsolidatedConfig, resources: Resources) -> PhasedPipeline:
    """Return evidence for a section: over-fetched, kept many-sided, recovered, reranked or not, whatever fails."""
    primary = _primary(config, resources)
    return PhasedPipeline.of(
        (
            Phase(
                "setup",
                (
                    Analyze(resources.text_search_config),
                    Embed(resources.encoder, resources.query_cache),
                    SetUpSection(config),
                ),
            ),
            Phase("validation", (ValidateScope(),)),
            Phase("structural_routing", (RouteStructure(config.structure),) if config.structure.headings else ()),
            Phase("primary", primary),
            Phase("chunk_retry", (RetryChunks(config.retry, primary),)),
            Phase("recovery", (_recovery(config, resources),)),
            Phase("assembly", _assembly(config, resources)),
            Phase("packing", _packing(config, resources), is_closing=True),
        )
    )


def _recovery(config: ConsolidatedConfig, resources: Resources) -> Recover:
    return Recover(config.cascade, _tiers(config, resources), CutWithQuota(config.quota), resources.admission)


def _primary(config: ConsolidatedConfig, resources: Resources) -> tuple[Stage, ...]:
    """Return the primary search: what is found, above the section's floors, cut to its depth."""
    return (*_search(config, resources), SectionFloors(config.grades), CutWithQuota(config.quota))


def _search(config: ConsolidatedConfig, resources: Resources) -> tuple[Stage, ...]:
    """Return the search without floors: vectors and words side by side, fused, read, checked."""
    return (
        Legs(
            (
                Dense(config.dense, resources.index),
                Bm25(config.bm25, resources.bm25, resources.text_search_config),
            ),
            resources.executor,
        ),
        FuseWeighted(config.fusion, config.primary),
        Complete(config.fulltext, resources.index),
        CheckAccess(),
    )


def _tiers(config: ConsolidatedConfig, resources: Resources) -> RecoveryTiers:
    """Return what the recovery cascade searches with."""
    return RecoveryTiers(
        search=_search(config, resources),
        words=(Bm25(config.bm25, resources.bm25, resources.text_search_config), Fulltext(config.fulltext)),
        dense=config.dense,
        fulltext=config.fulltext,
        index=resources.index,
        other_indexes=resources.other_indexes,
    )


def _assembly(config: ConsolidatedConfig, resources: Resources) -> tuple[Stage, ...]:
    """Return what makes evidence of a pool."""
    cross, figures = _cross_encoding(config, resources), resources.guards.figures
    return (
        RecoverSources(
            config.sources,
            resources.index,
            (Complete(config.fulltext, resources.index), CheckAccess()),
            resources.admission,
        ),
        Freshness(),
        Dedupe(config.dedupe),
        TightenPool(config.density, cross.guard if cross else None, figures),
        RerankSection(config.rerank, config.semantic_bm25, cross, figures),
        Protect(config.sources),
        PreferSources(config.precedence),
        BalanceSources(config.fairness),
    )


def _cross_encoding(config: ConsolidatedConfig, resources: Resources) -> CrossEncoding | None:
    """Return the cross-encoder behind its guard, None where none is configured."""
    if resources.reranker is None:
        return None
    guard = resources.guards.guard(resources.reranker, config.breaker, config.rerank)
    return CrossEncoding(resources.reranker, guard, resources.executor)


def _packing(config: ConsolidatedConfig, resources: Resources) -> tuple[Stage, ...]:
    return (
        Assemble(config.assemble, resources.count_tokens),
        JudgeAnswerability(
            config.answerability,
            resources.text_search_config,
            resources.sentence_encoder,
            resources.calibrations.get("consolidated"),
        ),
    )
