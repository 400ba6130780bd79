"""The score breakdown of a hit ranked by several signals, and of an evidence hit: every part, and what moved it."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from corecube.scope import TrustLevel
from explorer import wording
from explorer.wording import WORDS
from retrieval.engine.types import ChunkId, Hit, Lift, ScoreType, TermMatch
from retrieval.presets.consolidated.config import ConsolidatedConfig
from retrieval.presets.consolidated.evidence.order import MERIT, PRECEDENCE, PROTECTED
from retrieval.presets.consolidated.evidence.recovery import is_recovered
from retrieval.presets.consolidated.evidence.scoring import Provider
from retrieval.presets.consolidated.evidence.section_state import SectionAsk, SectionState
from retrieval.presets.helix.config import HelixConfig
from retrieval.presets.helix.stages.signals import RankedAs
from retrieval.ranking.blend import on_unit_scale
from retrieval.ranking.signals import SIGNALS, WRITTEN, last_read, last_touched
from retrieval.search.outcome import SearchOutcome


@dataclass(frozen=True, slots=True)
class LedgerRow:
    """One row of a score breakdown."""

    signal: str
    label: str
    value: str  #: "+0.438", "allowed".
    facts: tuple[str, ...]
    formula: str = ""
    config_key: str = ""
    terms: tuple[TermMatch, ...] = ()  #: The query lexemes that the chunk contains.
    absent: bool = False
    amount: float | None = None  #: The contribution in full precision; None for a row that adds nothing to the score.


def cosine_fact(hit: Hit) -> str:
    """Return a hit's cosine: "cosine 0.713"."""
    cosine = hit.signals.get("cosine")
    return "no vector stored" if cosine is None else f"cosine {cosine:.3f}"


def rerank_facts(hit: Hit) -> list[str]:
    """Return a reranker's raw score, and its value on the unit scale where that differs."""
    facts = [f"{WORDS['rerank_scores'].get(hit.score_type, 'score')} {hit.signals['rerank']:.3f}"]
    return [*facts, f"logistic {on_unit_scale(hit):.3f}"] if hit.score_type is ScoreType.LOGIT else facts


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


def _ranks(hit: Hit, outcome: SearchOutcome, legs: Iterable[str]) -> Iterator[str]:
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
    place = f"{name} ranks {order.index(name) + 1} of {len(order)}" if name in order else f"{name} has no precedence"
    return LedgerRow(
        "precedence",
        "Precedence",
        f"{hit.signals[PRECEDENCE]:+.4f}",
        (place, f"adjusted score {on_unit_scale(hit) + hit.signals[PRECEDENCE]:.4f}"),
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


_REPLACED: Final = "used before reranking only"
_TIMES: Final = "\N{MULTIPLICATION SIGN}"
_ELSEWHERE: Final = "a passage not shown"
_MAX_CHARACTERS: Final = 200
_MAX_LIFTS: Final = 4
#: The text of a lift; {source} is the hit that it comes from.
_WORDS: Final = WORDS["lifts"]


def signal_rows(hit: Hit, outcome: SearchOutcome, ranked: RankedAs) -> Iterator[LedgerRow]:
    """Yield a row for each signal; their amounts sum to the score. Expects a completed hit."""
    memory_type = ranked.of(hit)
    weights = outcome.config.values()
    for signal in SIGNALS:
        amount = hit.contributions.get(signal)
        yield LedgerRow(
            signal=signal,
            label=wording.signal_label(signal),
            value="" if amount is None else f"{amount:+.3f}",
            facts=_FACTS[signal](hit, outcome),
            formula=_REPLACED
            if amount is None and "rerank" in hit.contributions
            else _formula(amount, weights[f"signals.{memory_type}.{signal}"], f"{memory_type} items"),
            config_key=f"signals.{memory_type}.{signal}",
            terms=hit.matches if signal == "similarity" else (),
            absent=amount is None,
            amount=amount,
        )


def _formula(amount: float | None, weight: float, items: str) -> str:
    """Return "0.4 x 0.730 min-max normalised": the weight, for which items, and the normalised signal."""
    if amount is None:
        return "unknown, so nothing is added"
    share = amount / weight if weight else 0.0
    return f"{weight:g} {_TIMES} {share:.3f} min-max normalised, for {items}"


def _similarity(hit: Hit, outcome: SearchOutcome) -> tuple[str, ...]:
    names = {"cosine": "cosine", "fulltext": "full text", "sparse": "sparse"}
    raw = (f"{word} {hit.signals[name]:.3f}" for name, word in names.items() if name in hit.signals)
    share = hit.signals.get(WRITTEN, 0.0)
    written = (f"contains {share:.0%} of the code terms of the query",) if share else ()
    return (*raw, *_ranks(hit, outcome, hit.ranks), *written)


def _recency(hit: Hit, outcome: SearchOutcome) -> tuple[str, ...]:
    chunk, config, now = hit.chunk, outcome.config, outcome.state.now
    to_the_day = not outcome.state.is_admin
    read = "read (in whole days)" if to_the_day else "read"
    is_read = last_read(chunk, now, to_the_day=to_the_day) is not None
    then = read if is_read else "changed" if chunk.modified_at else "synced"
    hours = max(0.0, (now - last_touched(chunk, now, to_the_day=to_the_day)).total_seconds() / 3600)
    decay = config.signals.hourly_decay if isinstance(config, HelixConfig) else 1.0
    return (f"{hours:,.0f} hours since it was last {then}", f"{decay:g}^{hours:,.0f} = {hit.signals['recency']:.3f}")


def _salience(hit: Hit, outcome: SearchOutcome) -> tuple[str, ...]:  # noqa: ARG001 -- one of several
    if hit.chunk.salience is None:
        return ("not computed yet: its sync is not finished",)
    return (f"relevance to its document's topic: {hit.chunk.salience:.2f}",)


def _confidence(hit: Hit, outcome: SearchOutcome) -> tuple[str, ...]:
    trust: TrustLevel = outcome.state.scope.inclusion(hit.chunk.connection_id).connection.trust
    confirmed = "confirmed by a person" if hit.chunk.is_confirmed else "not confirmed by a person"
    return (f"{wording.level(trust)} source", confirmed, f"{hit.signals['confidence']:.2f}")


def lift_facts(hit: Hit, hits: Sequence[Hit]) -> tuple[str, ...]:
    """Return a clause for each of a hit's greatest lifts, and one for the sum of the others.

    `hits` are those shown, in order; their ranks name the sources.
    """
    if not hit.lifts:
        return ("not linked from any hit and not named in the query",)
    places = {shown.chunk_id: f"#{place}" for place, shown in enumerate(hits, start=1)}
    lifts = sorted(hit.lifts, key=lambda lift: -lift.amount)
    rest = [lift.amount for lift in lifts[_MAX_LIFTS:]]
    more = (f"and {len(rest)} more: {math.fsum(rest):+.3f}",) if rest else ()
    return (*(_lift_text(lift, places) for lift in lifts[:_MAX_LIFTS]), *more)


def _lift_text(lift: Lift, places: Mapping[ChunkId, str]) -> str:
    source = _ELSEWHERE if lift.source is None else places.get(lift.source, _ELSEWHERE)
    words = _WORDS.get(lift.kind, lift.kind.replace("_", " ")).format(source=source)
    name = f" {_quoted(lift.name)}" if lift.name else ""
    sentence = f" by: {_quoted(lift.sentence)}" if lift.sentence and lift.sentence != lift.name else ""
    return f"{words}{name}{sentence} {lift.amount:+.3f}"


def _quoted(text: str) -> str:
    short = (
        text if len(text) <= _MAX_CHARACTERS else f"{text[:_MAX_CHARACTERS].rpartition(' ')[0]} \N{HORIZONTAL ELLIPSIS}"
    )
    return f"\N{LEFT DOUBLE QUOTATION MARK}{short}\N{RIGHT DOUBLE QUOTATION MARK}"


_FACTS: Final[Mapping[str, Callable[[Hit, SearchOutcome], tuple[str, ...]]]] = {
    "similarity": _similarity,
    "recency": _recency,
    "salience": _salience,
    "confidence": _confidence,
    "graph": lambda hit, outcome: lift_facts(hit, outcome.hits),
}
