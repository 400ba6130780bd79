"""The score ledger: every number behind a hit's place, with its formula and the config key that sets it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from corecube.scope import FreshnessBasis
from explorer import wording
from explorer.components.ledger_rows import LedgerRow, TermRow
from explorer.pages.explorer import ledger_evidence
from explorer.pages.explorer.ledger_relevance import relevance_row
from explorer.pages.explorer.ledger_signals import signal_rows
from retrieval.engine.state import DropReason
from retrieval.engine.types import ChunkId, Hit, Ranking, ScoreType
from retrieval.presets.consolidated.config import ConsolidatedConfig
from retrieval.presets.consolidated.evidence.fusion import ranking_weights, weighted_rank_fusion
from retrieval.presets.consolidated.evidence.section_state import SectionState
from retrieval.presets.contextpack.config import ContextPackConfig
from retrieval.presets.contextpack.judge import MAPPED, RUBRIC
from retrieval.presets.corecube.config import CorecubeConfig
from retrieval.presets.helix.stages.signals import RankedAs
from retrieval.presets.preset import PresetConfig
from retrieval.ranking.blend import on_unit_scale
from retrieval.ranking.fusion import reciprocal_rank_fusion
from retrieval.search.outcome import SearchOutcome

_REPLACED: Final = "counted in the blend only"
#: The only part of a score by the rubric, or of one that is shown on its scale.
_ON_RUBRIC_SCALE: Final = frozenset({RUBRIC, MAPPED})
_BLENDING: Final = (CorecubeConfig, ContextPackConfig)
#: What the raw score of a reranker is called.
_RERANK_WORDS: Final = {
    ScoreType.LOGIT: "logit",
    ScoreType.RELEVANCE: "relevance",
    ScoreType.MAXSIM: "late interaction",
}


@dataclass(frozen=True, slots=True)
class Ledger:
    """What a hit's score is made of, and what else decided its place."""

    parts: tuple[LedgerRow, ...]
    #: "0.438 + 0.212 + 0.074 = 0.724"; empty where there is nothing to add up.
    total: str
    decisions: tuple[LedgerRow, ...]


@dataclass(frozen=True, slots=True)
class LedgerSource:
    """What every hit's ledger is read from, computed once per search."""

    outcome: SearchOutcome
    #: Place of each chunk in the fused pool, from 1.
    pool_places: dict[ChunkId, int]
    copies: dict[ChunkId, int]

    @classmethod
    def of(cls, outcome: SearchOutcome) -> "LedgerSource":
        """Return the source of one outcome's ledgers. The pool is fused again, by the engine's own function."""
        state = outcome.state
        fused = _fused_again(outcome)
        copied = [drop.detail for drop in state.drops if drop.reason is DropReason.DUPLICATE]
        return cls(
            outcome,
            {hit.chunk_id: place for place, hit in enumerate(fused, start=1)},
            {hit.chunk_id: sum(detail.endswith(f" {hit.chunk_id}") for detail in copied) for hit in outcome.hits},
        )

    @property
    def config(self) -> PresetConfig:
        """The numbers that the search ran with."""
        return self.outcome.config


def _fused_again(outcome: SearchOutcome) -> Ranking:
    config, rankings = outcome.config, outcome.state.rankings
    if isinstance(config, ConsolidatedConfig):
        weights = ranking_weights(rankings, config.primary.sparse_weight)
        return weighted_rank_fusion(rankings, weights, rank_constant=config.fusion.rank_constant)
    return reciprocal_rank_fusion(rankings, rank_constant=config.fusion.rank_constant)


def ledger(hit: Hit, source: LedgerSource) -> Ledger:
    """Return a hit's ledger. Expects a completed hit (`hit.facts`)."""
    parts = tuple(_parts(hit, source))
    sums = " + ".join(f"{value:.3f}" for value in hit.contributions.values())
    total = f"{sums} = {hit.score:.3f}" if len(hit.contributions) > 1 else ""
    return Ledger(parts, total, tuple(_decisions(hit, source)))


def _parts(hit: Hit, source: LedgerSource) -> Iterator[LedgerRow]:
    """Yield the rows whose values sum to the score, then those that a reranker's own score has replaced."""
    if source.outcome.state.part(SectionState) is not None:
        yield from ledger_evidence.part_rows(hit, source.outcome)
        return
    if source.outcome.state.part(RankedAs) is not None:
        yield from signal_rows(hit, source.outcome)
        if "rerank" in hit.contributions:
            yield _rerank(hit)
        return
    rows = {"dense": _dense, "fulltext": _fulltext, "freshness": _freshness}
    for signal in hit.contributions:
        if signal == "rerank":
            yield _rerank(hit)
        elif signal in _ON_RUBRIC_SCALE:
            yield relevance_row(hit, source.outcome.state)
        else:
            yield rows[signal](hit, source) if signal in rows else _other(hit, signal)
    if "rerank" in hit.contributions or _ON_RUBRIC_SCALE.intersection(hit.contributions):
        yield from (row(hit, source) for signal, row in rows.items() if signal not in hit.contributions)


def _rerank(hit: Hit) -> LedgerRow:
    raw, blend = hit.signals["rerank"], hit.signals["blend"]
    facts = [f"{_RERANK_WORDS.get(hit.score_type, 'score')} {raw:.3f}", f"blend {blend:.3f}"]
    if hit.score_type is ScoreType.LOGIT:
        facts.insert(1, f"logistic {on_unit_scale(hit):.3f}")
    is_final = len(hit.contributions) == 1
    return LedgerRow(
        signal="rerank",
        label=wording.signal_label("rerank"),
        value=_added(hit, "rerank"),
        facts=tuple(facts),
        formula="the reranker's order is final" if is_final else "added to the blend",
        config_key="rerank.candidates",
        amount=hit.contributions["rerank"],
    )


def _dense(hit: Hit, source: LedgerSource) -> LedgerRow:
    cosine = hit.signals.get("cosine")
    raw = "no vector stored" if cosine is None else f"cosine {cosine:.3f}"
    return LedgerRow(
        signal="dense",
        label=wording.signal_label("dense"),
        value=_added(hit, "dense"),
        facts=(raw, leg_rank(hit, "dense", source)),
        formula=_weighted(hit, "dense", source),
        config_key="blend.dense",
        absent="dense" not in hit.ranks,
        amount=hit.contributions.get("dense"),
    )


def _fulltext(hit: Hit, source: LedgerSource) -> LedgerRow:
    terms = tuple(
        TermRow(match.lexeme, match.idf, match.share, wording.FIELD_NAMES[match.weight]) for match in hit.matches
    )
    raw = f"score {hit.signals.get('fulltext', 0.0):.3f}" if terms else "contains no query term"
    return LedgerRow(
        signal="fulltext",
        label=wording.signal_label("fulltext"),
        value=_added(hit, "fulltext"),
        facts=(raw, leg_rank(hit, "fulltext", source)),
        formula=_weighted(hit, "fulltext", source),
        config_key="blend.fulltext",
        terms=terms,
        absent="fulltext" not in hit.ranks,
        amount=hit.contributions.get("fulltext"),
    )


def _freshness(hit: Hit, source: LedgerSource) -> LedgerRow:
    connection = source.outcome.state.scope.inclusion(hit.chunk.connection_id).connection
    by_change = connection.freshness_basis is FreshnessBasis.MODIFIED and hit.chunk.modified_at is not None
    age, half_life = hit.signals["age_days"], connection.half_life_days
    return LedgerRow(
        signal="freshness",
        label=wording.signal_label("freshness"),
        value=_added(hit, "freshness"),
        facts=(
            f"{age:.1f} days since its last {'change' if by_change else 'sync'}",
            f"0.5^({age:.1f}/{half_life:g}) = {hit.signals['freshness']:.3f}",
        ),
        formula=_halved(hit, source.config.blend.freshness) if isinstance(source.config, _BLENDING) else "",
        config_key="blend.freshness",
        amount=hit.contributions.get("freshness"),
    )


def _other(hit: Hit, signal: str) -> LedgerRow:
    """Return the row of a contribution that has no row of its own yet."""
    raw = (f"{signal} {hit.signals[signal]:.3f}",) if signal in hit.signals else ()
    return LedgerRow(
        signal, wording.signal_label(signal), _added(hit, signal), raw, amount=hit.contributions.get(signal)
    )


def leg_rank(hit: Hit, leg: str, source: LedgerSource) -> str:
    """Return where a leg had the hit: "rank 2 of 100", "not in the top 100", "not among its 64"."""
    found = len(source.outcome.state.rankings.get(leg, ()))
    if rank := hit.ranks.get(leg):
        return f"rank {rank} of {found}"
    if not found:
        return "the leg returned no hits"
    depth = getattr(getattr(source.config, leg, None), "depth", found)
    return f"not in the top {depth}" if found >= depth else f"not among the leg's {found}"


def _decisions(hit: Hit, source: LedgerSource) -> Iterator[LedgerRow]:
    """Yield what decided beside the score: the pool, trust, copies, quality, access."""
    yield _fusion(hit, source)
    yield from ledger_evidence.decision_rows(hit, source.outcome)
    if source.config.tie_tolerance:
        yield _trust(hit, source)
    if copies := source.copies.get(hit.chunk_id):
        fact = f"preferred to {wording.counted(copies, 'chunk')} with duplicate or near-duplicate text"
        yield LedgerRow("dedupe", "Duplicates", "retained", (fact,), config_key="dedupe.min_similarity")
    if "quality" in hit.signals:
        yield _quality(hit, source)
    yield _access(hit, source)


def _fusion(hit: Hit, source: LedgerSource) -> LedgerRow:
    config = source.config
    constant = config.fusion.rank_constant
    weights = _rank_weights(hit, config)
    facts = tuple(
        f"{wording.leg_label(leg)} {weights[leg]:g}/({constant} + {rank}) = {weights[leg] / (constant + rank):.5f}"
        for leg, rank in hit.ranks.items()
    )
    place = source.pool_places.get(hit.chunk_id)
    pool = f"pool rank {place} of {len(source.pool_places)}" if place else ""
    return LedgerRow(
        "rrf",
        "Fusion",
        f"{hit.signals.get('rrf', 0.0):.5f}",
        facts,
        formula=pool,
        config_key="fusion.rank_constant",
    )


def _rank_weights(hit: Hit, config: PresetConfig) -> Mapping[str, float]:
    """Return what the fusion counts a rank in each ranking that holds the hit."""
    if isinstance(config, ConsolidatedConfig):
        return ranking_weights(hit.ranks, config.primary.sparse_weight)
    return dict.fromkeys(hit.ranks, 1)


def _trust(hit: Hit, source: LedgerSource) -> LedgerRow:
    trust = source.outcome.state.scope.inclusion(hit.chunk.connection_id).connection.trust
    tolerance = source.config.tie_tolerance
    return LedgerRow(
        "trust",
        "Trust",
        wording.level(trust),
        (f"breaks ties between scores within {tolerance:g}",),
        config_key="ties.tolerance",
    )


def _quality(hit: Hit, source: LedgerSource) -> LedgerRow:
    parts = sorted(hit.chunk.quality_parts.items(), key=lambda part: (-part[1], part[0]))
    return LedgerRow(
        "quality",
        "Quality",
        f"{hit.signals['quality']:.2f}",
        tuple(f"{name} -{share:.2f}" for name, share in parts) or ("no boilerplate found",),
        formula=f"minimum {source.config.quality.minimum:g}",
        config_key="quality.minimum",
    )


def _access(hit: Hit, source: LedgerSource) -> LedgerRow:
    inclusion = source.outcome.state.scope.inclusion(hit.chunk.connection_id)
    return LedgerRow("access", "Access", "allowed", (wording.inclusion_rule(inclusion),))


def _added(hit: Hit, signal: str) -> str:
    """Return what a signal adds to the score: "+0.438"; nothing where a reranker's score has replaced it."""
    return f"{hit.contributions[signal]:+.3f}" if signal in hit.contributions else ""


def _halved(hit: Hit, weight: float) -> str:
    """Return "0.1 x 0.500": the weight and the freshness."""
    if "freshness" not in hit.contributions:
        return _REPLACED
    return f"{weight:g} \N{MULTIPLICATION SIGN} {hit.signals['freshness']:.3f}"


def _weighted(hit: Hit, signal: str, source: LedgerSource) -> str:
    """Return "0.6 x 0.730 of the pool's range": the query's weight and the normalised signal behind a contribution."""
    if signal not in hit.contributions:
        return _REPLACED
    weight = source.outcome.state.weights[signal]
    if not weight:
        return "weight 0"
    share = hit.contributions[signal] / weight
    return f"{weight:.3g} \N{MULTIPLICATION SIGN} {share:.3f} of the pool's range"
