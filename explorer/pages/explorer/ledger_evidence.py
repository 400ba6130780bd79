"""The score breakdown of an evidence hit: its score, and what moved it afterwards."""

from collections.abc import Iterator

from explorer import wording
from explorer.components.ledger_rows import LedgerRow, cosine_fact, rerank_facts
from retrieval.engine.types import Hit
from retrieval.presets.consolidated.config import ConsolidatedConfig
from retrieval.presets.consolidated.evidence.order import MERIT, PRECEDENCE, PROTECTED
from retrieval.presets.consolidated.evidence.recovery import is_recovered
from retrieval.presets.consolidated.evidence.scoring import Provider
from retrieval.presets.consolidated.evidence.section_state import SectionAsk, SectionState
from retrieval.ranking.blend import on_unit_scale
from retrieval.search.outcome import SearchOutcome


def part_rows(hit: Hit, outcome: SearchOutcome) -> Iterator[LedgerRow]:
    """Yield the rows whose amounts sum to the score; for an unscored hit one that says so."""
    if hit.provider == Provider.NONE:
        fact = "the cross-encoder failed for this batch; pool order used"
        yield LedgerRow("rerank", wording.signal_label("rerank"), "", (fact,), absent=True)
    for part, amount in hit.contributions.items():
        value = f"{amount:+.3f}"
        if part == "rerank":
            is_final = len(hit.contributions) == 1
            formula = "the cross-encoder's score is final" if is_final else "added to its pool rank"
            label, facts = wording.signal_label(part), tuple(rerank_facts(hit))
            yield LedgerRow(part, label, value, facts, formula=formula, amount=amount)
        elif part == "pooled":
            fact = "1 for the first in the pool, towards 0 for the last"
            yield LedgerRow("freshness", "Pool rank", value, (fact,), amount=amount)
        elif part == "semantic":
            yield _semantic(hit, outcome, amount)
        elif part == "bm25":
            yield _keywords(hit, outcome, amount)


def _semantic(hit: Hit, outcome: SearchOutcome, amount: float) -> LedgerRow:
    cosine = max(0.0, hit.signals.get("cosine") or 0.0)
    weighted = f"{amount / cosine:.3g} \N{MULTIPLICATION SIGN} the cosine" if cosine else ""
    return LedgerRow(
        "dense",
        "Vector similarity",
        f"{amount:+.3f}",
        (cosine_fact(hit), *_ranks(hit, outcome, ("dense",))),
        formula=weighted or "a negative value of the cosine counts as 0",
        config_key="semantic_bm25.semantic",
        absent="dense" not in hit.ranks,
        amount=amount,
    )


def _keywords(hit: Hit, outcome: SearchOutcome, amount: float) -> LedgerRow:
    names = {"bm25": "BM25", "fulltext": "full text"}
    facts = [f"{word} {hit.signals[name]:.3f}" for name, word in names.items() if hit.signals.get(name)]
    return LedgerRow(
        "fulltext",
        "Keyword match",
        f"{amount:+.3f}",
        (*(facts or ["contains no query term"]), *_ranks(hit, outcome, ("bm25", "fulltext"))),
        formula="relative to the best in the pool",
        config_key="semantic_bm25.bm25",
        terms=hit.matches,
        absent="bm25" not in hit.ranks,
        amount=amount,
    )


def _ranks(hit: Hit, outcome: SearchOutcome, legs: tuple[str, ...]) -> Iterator[str]:
    for leg in legs:
        if rank := hit.ranks.get(leg):
            yield f"rank {rank} of {len(outcome.state.rankings.get(leg, ()))} in {wording.leg_label(leg)}"


def decision_rows(hit: Hit, outcome: SearchOutcome) -> Iterator[LedgerRow]:
    """Yield what decided the rank after the score, in order."""
    section, config = outcome.state.part(SectionState), outcome.config
    if section is None or not isinstance(config, ConsolidatedConfig):
        return
    if PRECEDENCE in hit.signals:
        yield _precedence(hit, section.ask)
    if MERIT in hit.signals:
        yield _fairness(hit, outcome)
    if PROTECTED in hit.signals:
        rank, name = int(hit.signals[PROTECTED]), section.ask.type_of(hit)
        why = f"recovered, since {name} was missing" if is_recovered(hit) else f"the section needs more of {name}"
        facts = (f"rank {rank}, below the top {section.ask.section.keep}", why)
        key = "sources.max_protected" if is_recovered(hit) else ""
        yield LedgerRow("protect", "Protection", "retained", facts, config_key=key)


def _precedence(hit: Hit, ask: SectionAsk) -> LedgerRow:
    name, order = ask.type_of(hit), ask.section_set.precedence
    place = f"{name} is {order.index(name) + 1} of {len(order)}" if name in order else f"{name} has no precedence"
    return LedgerRow(
        "precedence",
        "Precedence",
        f"{hit.signals[PRECEDENCE]:+.4f}",
        (place, f"compared as {on_unit_scale(hit) + hit.signals[PRECEDENCE]:.4f}"),
        formula="halved for SemanticBM25 scores" if hit.provider == Provider.SEMANTIC_BM25 else "",
        config_key="precedence.limit",
    )


def _fairness(hit: Hit, outcome: SearchOutcome) -> LedgerRow:
    merit = int(hit.signals[MERIT])
    place = next((place for place, it in enumerate(outcome.state.hits, 1) if it.chunk_id == hit.chunk_id), merit)
    # A protected hit is further in front than its rank, since the hits between were cut.
    rank = int(hit.signals.get(PROTECTED, place))
    move = f"moved up by {merit - rank}" if rank < merit else f"moved down by {rank - merit}"
    value, facts = "unchanged" if rank == merit else move, (f"rank {merit} by score and precedence",)
    return LedgerRow("fairness", "Fairness", value, facts, config_key="fairness.document_share")
