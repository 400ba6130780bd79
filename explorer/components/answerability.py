"""Whether the passages answer the question: the verdict, its confidence, and what each signal added to it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from explorer.components.bars import percent
from retrieval.engine.types import Answerability, Verdict
from retrieval.ranking.answerability.verdict import AnswerabilityConfig, Reason
from retrieval.search.outcome import SearchOutcome

VERDICTS: Final[Mapping[Verdict, str]] = {
    Verdict.ANSWERABLE: "answerable",
    Verdict.PARTIAL: "partly answerable",
    Verdict.NOT_ANSWERABLE: "not answerable",
}
TONES: Final[Mapping[Verdict, str]] = {
    Verdict.ANSWERABLE: "good",
    Verdict.PARTIAL: "warn",
    Verdict.NOT_ANSWERABLE: "bad",
}
_REASONS: Final[Mapping[str, str]] = {
    Reason.NO_SCOPE: "nothing in scope",
    Reason.NOTHING_FOUND: "nothing found",
    Reason.BELOW_FLOOR: "all below the floor",
    Reason.FILTERED: "all hits dropped",
    Reason.UNKNOWN_TERMS: "unknown terms",
    Reason.WEAK_MATCH: "weak match",
}
#: Half of a bar that grows to both sides from its middle.
_MIDDLE: Final = 50.0


@dataclass(frozen=True, slots=True)
class SignalRow:
    """A signal, and what it added to the log-odds."""

    label: str
    value: str
    #: "+0.83"; empty for a signal that the model does not read.
    added: str
    is_for: bool
    #: Where its bar starts and how long it is, in percent; 50 is nothing.
    x: float
    width: float


@dataclass(frozen=True, slots=True)
class AnswerabilityPanel:
    """The verdict on a search."""

    verdict: str
    #: Decides the colour: good, warn, bad.
    tone: str
    confidence: float
    #: The bounds of the verdicts, in percent of the confidence's bar.
    partial_from: float
    answerable_from: float
    is_calibrated: bool
    reason: str
    explanation: str
    rows: tuple[SignalRow, ...]

    @property
    def share(self) -> float:
        """The confidence in percent."""
        return round(100 * self.confidence, 1)


def answerability_panel(outcome: SearchOutcome) -> AnswerabilityPanel | None:
    """Return the verdict on a search; None when the time was up before it was judged."""
    judged = outcome.state.answerability
    return None if judged is None else _panel(judged, outcome.config.answerability)


def _panel(judged: Answerability, config: AnswerabilityConfig) -> AnswerabilityPanel:
    return AnswerabilityPanel(
        verdict=VERDICTS[judged.verdict],
        tone=TONES[judged.verdict],
        confidence=judged.confidence,
        partial_from=100 * config.partial_from,
        answerable_from=100 * config.answerable_from,
        is_calibrated=judged.is_calibrated,
        reason=_REASONS.get(judged.reason, judged.reason),
        explanation=judged.explanation,
        rows=tuple(_rows(judged)),
    )


def _rows(judged: Answerability) -> Iterator[SignalRow]:
    """Yield the signals that the confidence was made of, what weighs most first, then those that were not read."""
    whole = 2 * max(map(abs, judged.contributions.values()), default=0.0)
    for name in sorted(judged.signals, key=lambda name: -abs(judged.contributions.get(name, 0.0))):
        added = judged.contributions.get(name)
        width = percent(abs(added or 0.0), whole)
        yield SignalRow(
            label=signal_label(name),
            value=f"{judged.signals[name]:.2f}",
            added="" if added is None else f"{added:+.2f}".replace("-", "\N{MINUS SIGN}"),
            is_for=(added or 0.0) >= 0,
            x=round(_MIDDLE if (added or 0.0) >= 0 else _MIDDLE - width, 2),
            width=round(width, 2),
        )


def signal_label(name: str) -> str:
    """Return a signal as a heading reads it."""
    return _LABELS.get(name, name.replace("_", " ").capitalize())


_LABELS: Final[Mapping[str, str]] = {
    "coverage_sentence": "Query term coverage, best sentence",
    "sentence_lead": "Best sentence margin",
    "coverage_passage": "Query term coverage, best passage",
    "coverage_context": "Query term coverage, all passages",
    "unknown_share": "Terms not found in scope",
    "fulltext_share": "Full-text score per idf",
    "cosine_best": "Best passage cosine",
    "cosine_lead": "Best cosine margin, in standard deviations",
    "sentence_cosine": "Best sentence cosine",
    "entity_coverage": "Names in the first passage",
    "number_coverage": "Numbers in the best passage",
    "leg_agreement": "Agreement of the legs' top hits",
    "leg_overlap": "Overlap of the legs' top 10",
    "denial_unmatched": "Negation missing in the best sentence",
    "rerank_logit": "Best reranker score",
    "rerank_relevance": "Best reranker score",
    "rerank_maxsim": "Best late-interaction score",
}
