"""The ledger of a hit on the rubric's scale: what a language model judged and why, or what stands in for that."""

from collections.abc import Iterator

from explorer import wording
from explorer.components.ledger_rows import LedgerRow
from retrieval.engine.state import SearchState
from retrieval.engine.types import Hit
from retrieval.presets.contextpack.judge import MAPPED, RUBRIC, RubricScores


def relevance_row(hit: Hit, state: SearchState) -> LedgerRow:
    """Return the row of a hit's score by the rubric, or of another score that is shown on its scale."""
    is_judged = RUBRIC in hit.contributions
    signal = RUBRIC if is_judged else MAPPED
    return LedgerRow(
        signal=signal,
        label=wording.signal_label(signal),
        value=f"{hit.score:.1f}",
        facts=tuple(_judged(hit, state) if is_judged else _stand_in(hit)),
        formula="sorted by grade, ties by blended score" if is_judged else "not graded by the language model",
        config_key="relevance.candidates",
        amount=hit.score,
    )


def _judged(hit: Hit, state: SearchState) -> Iterator[str]:
    """Yield what the model said. Its evidence is there while the search is at hand, and is not stored."""
    yield f"{hit.signals[RUBRIC]:g} of 100"
    yield "answers the question" if hit.signals["answers"] else "does not answer the question by itself"
    judged = (state.part(RubricScores) or RubricScores()).relevance.get(hit.chunk_id)
    if judged is not None and judged.evidence:
        yield f"evidence: \N{LEFT DOUBLE QUOTATION MARK}{judged.evidence}\N{RIGHT DOUBLE QUOTATION MARK}"
    yield f"blend {hit.signals['blend']:.3f}"


def _stand_in(hit: Hit) -> Iterator[str]:
    if "rerank" in hit.signals:
        yield f"reranker {hit.signals['rerank']:.3f}"
    yield f"blend {hit.signals['blend']:.3f}"
