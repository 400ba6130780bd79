"""The score breakdown: every number behind a hit's rank, with its formula and the config key that sets it."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from corecube.scope import FreshnessBasis
from explorer import wording
from explorer.pages.explorer import ledger_rows
from explorer.pages.explorer.ledger_rows import LedgerRow, cosine_fact, rerank_facts
from retrieval.engine.state import DropReason, SearchState
from retrieval.engine.types import ChunkId, Hit
from retrieval.presets.consolidated.evidence.section_state import SectionState
from retrieval.presets.contextpack.judge import MAPPED, RUBRIC, RubricScores
from retrieval.presets.helix.stages.signals import RankedAs
from retrieval.presets.preset import PresetConfig
from retrieval.ranking.blend import BlendConfig
from retrieval.ranking.fusion import weighted_rank_fusion
from retrieval.search.outcome import SearchOutcome

_REPLACED: Final = "used in the blended score only"
#: The only part of a score by a language model's grade, or of one on the same scale.
_ON_RUBRIC_SCALE: Final = frozenset({RUBRIC, MAPPED})


@dataclass(frozen=True, slots=True)
class Ledger:
    """The parts of a hit's score, and what else decided its rank."""

    parts: tuple[LedgerRow, ...]
    total: str  #: "0.438 + 0.212 + 0.074 = 0.724"; empty if there is nothing to add up.
    decisions: tuple[LedgerRow, ...]


@dataclass(frozen=True, slots=True)
class LedgerSource:
    """The data of all score breakdowns, computed once per search."""

    outcome: SearchOutcome
    pool_places: dict[ChunkId, int]  #: Rank of each chunk in the fused pool.
    copies: dict[ChunkId, int]

    @classmethod
    def of(cls, outcome: SearchOutcome) -> "LedgerSource":
        """Return the data of one outcome. The engine's function fuses the pool again."""
        config, rankings = outcome.config, outcome.state.rankings
        weights = config.ranking_weights(rankings)
        fused = weighted_rank_fusion(rankings, weights, rank_constant=config.fusion.rank_constant)
        copied = [drop.detail for drop in outcome.state.drops if drop.reason is DropReason.DUPLICATE]
        return cls(
            outcome,
            {hit.chunk_id: place for place, hit in enumerate(fused, start=1)},
            {hit.chunk_id: sum(detail.endswith(f" {hit.chunk_id}") for detail in copied) for hit in outcome.hits},
        )

    @property
    def config(self) -> PresetConfig:
        """The settings of the search."""
        return self.outcome.config


def ledger(hit: Hit, source: LedgerSource) -> Ledger:
    """Return a hit's score breakdown. Expects a completed hit (`hit.facts`)."""
    sums = " + ".join(f"{value:.3f}" for value in hit.contributions.values())
    total = f"{sums} = {hit.score:.3f}" if len(hit.contributions) > 1 else ""
    return Ledger(tuple(_parts(hit, source)), total, tuple(_decisions(hit, source)))


def _parts(hit: Hit, source: LedgerSource) -> Iterator[LedgerRow]:
    """Yield the rows whose values sum to the score, then those that a reranker's own score replaced."""
    if source.outcome.state.part(SectionState) is not None:
        yield from ledger_rows.part_rows(hit, source.outcome)
        return
    if ranked := source.outcome.state.part(RankedAs):
        yield from ledger_rows.signal_rows(hit, source.outcome, ranked)
        if "rerank" in hit.contributions:
            yield _rerank(hit)
        return
    rows = {"dense": _dense, "fulltext": _fulltext, "freshness": _freshness}
    for signal in hit.contributions:
        if signal == "rerank":
            yield _rerank(hit)
        elif signal in _ON_RUBRIC_SCALE:
            yield _relevance(hit, source.outcome.state)
        elif signal in rows:
            yield rows[signal](hit, source)
        else:
            yield _part(hit, signal, (f"{signal} {hit.signals[signal]:.3f}",) if signal in hit.signals else ())
    if "rerank" in hit.contributions or _ON_RUBRIC_SCALE.intersection(hit.contributions):
        # A reference version may measure no freshness.
        yield from (
            row(hit, source)
            for signal, row in rows.items()
            if signal not in hit.contributions and (signal != "freshness" or signal in hit.signals)
        )


def _part(hit: Hit, signal: str, facts: tuple[str, ...], **more: Any) -> LedgerRow:  # noqa: ANN401 -- fields of the row
    """Return a signal's row: "+0.438", or without a value if a reranker's score replaced it."""
    amount = hit.contributions.get(signal)
    value = "" if amount is None else f"{amount:+.3f}"
    return LedgerRow(signal, wording.signal_label(signal), value, facts, amount=amount, **more)


def _rerank(hit: Hit) -> LedgerRow:
    is_final = len(hit.contributions) == 1
    return _part(
        hit,
        "rerank",
        (*rerank_facts(hit), f"blend {hit.signals['blend']:.3f}"),
        formula="the reranker's order is final" if is_final else "added to the blend",
        config_key="rerank.candidates",
    )


def _relevance(hit: Hit, state: SearchState) -> LedgerRow:
    is_graded = RUBRIC in hit.contributions
    signal = RUBRIC if is_graded else MAPPED
    words = {"blend": "blend"} if is_graded else {"rerank": "reranker", "blend": "blend"}
    others = (f"{word} {hit.signals[name]:.3f}" for name, word in words.items() if name in hit.signals)
    return LedgerRow(
        signal=signal,
        label=wording.signal_label(signal),
        value=f"{hit.score:.1f}",
        facts=(*(_graded(hit, state) if is_graded else ()), *others),
        formula="sorted by grade, ties by blended score" if is_graded else "not graded by the language model",
        config_key="relevance.candidates",
        amount=hit.score,
    )


def _graded(hit: Hit, state: SearchState) -> Iterator[str]:
    """Yield what the model returned. Its evidence is not stored, so a logged search has none."""
    yield f"{hit.signals[RUBRIC]:g} of 100"
    yield "answers the question" if hit.signals["answers"] else "does not answer the question by itself"
    grade = (state.part(RubricScores) or RubricScores()).relevance.get(hit.chunk_id)
    if grade is not None and grade.evidence:
        yield f"evidence: \N{LEFT DOUBLE QUOTATION MARK}{grade.evidence}\N{RIGHT DOUBLE QUOTATION MARK}"


def _dense(hit: Hit, source: LedgerSource) -> LedgerRow:
    return _part(
        hit,
        "dense",
        (cosine_fact(hit), leg_rank(hit, "dense", source)),
        formula=_weighted(hit, "dense", source),
        config_key="blend.dense",
        absent="dense" not in hit.ranks,
    )


def _fulltext(hit: Hit, source: LedgerSource) -> LedgerRow:
    score, by_cover = hit.signals.get("fulltext", 0.0), source.config.fulltext.text_search.by_cover
    raw = f"score {score:.3f}"
    if by_cover:
        raw = f"cover density {score:.3f} of {', '.join(match.lexeme for match in hit.matches)}"
    return _part(
        hit,
        "fulltext",
        (raw if hit.matches else "contains no query term", leg_rank(hit, "fulltext", source)),
        formula=_weighted(hit, "fulltext", source),
        config_key="blend.fulltext",
        terms=() if by_cover else hit.matches,  # A cover density has no part for each term.
        absent="fulltext" not in hit.ranks,
    )


def _freshness(hit: Hit, source: LedgerSource) -> LedgerRow:
    connection = source.outcome.state.scope.inclusion(hit.chunk.connection_id).connection
    by_change = connection.freshness_basis is FreshnessBasis.MODIFIED and hit.chunk.modified_at is not None
    age, half_life, freshness = hit.signals["age_days"], connection.half_life_days, hit.signals["freshness"]
    formula = ""
    if isinstance(blend := getattr(source.config, "blend", None), BlendConfig):
        weighted = f"{blend.freshness:g} \N{MULTIPLICATION SIGN} {freshness:.3f}"
        formula = weighted if "freshness" in hit.contributions else _REPLACED
    return _part(
        hit,
        "freshness",
        (
            f"{age:.1f} days since its last {'change' if by_change else 'sync'}",
            f"0.5^({age:.1f}/{half_life:g}) = {freshness:.3f}",
        ),
        formula=formula,
        config_key="blend.freshness",
    )


def leg_rank(hit: Hit, leg: str, source: LedgerSource) -> str:
    """Return a hit's rank in a leg: "rank 2 of 100", "not in the top 100", "not among the leg's 64"."""
    found = len(source.outcome.state.rankings.get(leg, ()))
    if rank := hit.ranks.get(leg):
        return f"rank {rank} of {found}"
    if not found:
        return "the leg returned no hits"
    depth = getattr(getattr(source.config, leg, None), "depth", found)
    return f"not in the top {depth}" if found >= depth else f"not among the leg's {found}"


def _decisions(hit: Hit, source: LedgerSource) -> Iterator[LedgerRow]:
    """Yield what decided besides the score: fusion, trust, duplicates, quality, access."""
    inclusion = source.outcome.state.scope.inclusion(hit.chunk.connection_id)
    yield _fusion(hit, source)
    yield from ledger_rows.decision_rows(hit, source.outcome)
    if tolerance := source.config.tie_tolerance:
        facts = (f"breaks ties between scores within {tolerance:g}",)
        trust = wording.level(inclusion.connection.trust)
        yield LedgerRow("trust", "Trust", trust, facts, config_key="ties.tolerance")
    if copies := source.copies.get(hit.chunk_id):
        fact = f"preferred to {wording.counted(copies, 'chunk')} with duplicate or near-duplicate text"
        yield LedgerRow("dedupe", "Duplicates", "retained", (fact,), config_key="dedupe.min_similarity")
    if "quality" in hit.signals:
        parts = sorted(hit.chunk.quality_parts.items(), key=lambda part: (-part[1], part[0]))
        yield LedgerRow(
            "quality",
            "Quality",
            f"{hit.signals['quality']:.2f}",
            tuple(f"{name} -{share:.2f}" for name, share in parts) or ("no boilerplate found",),
            formula=f"minimum {source.config.quality.minimum:g}",
            config_key="quality.minimum",
        )
    yield LedgerRow("access", "Access", "allowed", (wording.inclusion_rule(inclusion),))


def _fusion(hit: Hit, source: LedgerSource) -> LedgerRow:
    constant, weights = source.config.fusion.rank_constant, source.config.ranking_weights(hit.ranks)
    facts = tuple(
        f"{wording.leg_label(leg)} {weights[leg]:g}/({constant} + {rank}) = {weights[leg] / (constant + rank):.5f}"
        for leg, rank in hit.ranks.items()
    )
    place = source.pool_places.get(hit.chunk_id)
    pool = f"pool rank {place} of {len(source.pool_places)}" if place else ""
    value = f"{hit.signals.get('rrf', 0.0):.5f}"
    return LedgerRow("rrf", "Fusion", value, facts, formula=pool, config_key="fusion.rank_constant")


def _weighted(hit: Hit, signal: str, source: LedgerSource) -> str:
    """Return "0.6 x 0.730 min-max normalised": the query's weight and the normalised signal behind a contribution."""
    if signal not in hit.contributions:
        return _REPLACED
    weight = source.outcome.state.weights[signal]
    if not weight:
        return "weight 0"
    share = hit.contributions[signal] / weight
    return f"{weight:.3g} \N{MULTIPLICATION SIGN} {share:.3f} min-max normalised"
