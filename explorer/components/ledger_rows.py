"""The rows of score breakdowns."""

from dataclasses import dataclass

from explorer.wording import WORDS
from retrieval.engine.types import Hit, ScoreType, TermMatch
from retrieval.ranking.blend import on_unit_scale


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
