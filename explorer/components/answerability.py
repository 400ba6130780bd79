"""Whether the passages answer the question: the verdict, its confidence, and the contribution of each signal."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from explorer.components.bars import percent
from explorer.wording import WORDS
from retrieval.engine.types import Answerability
from retrieval.search.outcome import SearchOutcome

VERDICTS: Final = WORDS["verdicts"]
TONES: Final = WORDS["verdict_tones"]
_MIDDLE: Final = 50.0  #: Percent; bars grow from here to both sides.


@dataclass(frozen=True, slots=True)
class _SignalRow:
    label: str
    value: str
    added: str  #: "+0.83"; empty for a signal that the model does not use.
    is_for: bool
    x: float  #: Start and length of its bar, in percent; 50 is zero.
    width: float


@dataclass(frozen=True, slots=True)
class AnswerabilityPanel:
    """The verdict on a search."""

    verdict: str
    tone: str  #: good, warn or bad.
    confidence: float
    partial_from: float  #: The thresholds of the verdicts, in percent of the confidence bar.
    answerable_from: float
    is_calibrated: bool
    reason: str
    explanation: str
    rows: tuple[_SignalRow, ...]

    @property
    def share(self) -> float:
        """The confidence in percent."""
        return round(100 * self.confidence, 1)


def answerability_panel(outcome: SearchOutcome) -> AnswerabilityPanel | None:
    """Return the verdict on a search; None if the search timed out before."""
    found, config = outcome.state.answerability, outcome.config.answerability
    if found is None:
        return None
    return AnswerabilityPanel(
        verdict=VERDICTS[found.verdict],
        tone=TONES[found.verdict],
        confidence=found.confidence,
        partial_from=100 * config.partial_from,
        answerable_from=100 * config.answerable_from,
        is_calibrated=found.is_calibrated,
        reason=WORDS["verdict_reasons"].get(found.reason, found.reason),
        explanation=found.explanation,
        rows=tuple(_rows(found)),
    )


def _rows(found: Answerability) -> Iterator[_SignalRow]:
    """Yield the signals of the confidence by size of contribution, then those that were not used."""
    full = 2 * max(map(abs, found.contributions.values()), default=0.0)
    for name in sorted(found.signals, key=lambda name: -abs(found.contributions.get(name, 0.0))):
        added = found.contributions.get(name)
        width = percent(abs(added or 0.0), full)
        yield _SignalRow(
            label=signal_label(name),
            value=f"{found.signals[name]:.2f}",
            added="" if added is None else f"{added:+.2f}".replace("-", "\N{MINUS SIGN}"),
            is_for=(added or 0.0) >= 0,
            x=round(_MIDDLE if (added or 0.0) >= 0 else _MIDDLE - width, 2),
            width=round(width, 2),
        )


def signal_label(name: str) -> str:
    """Return a signal's label."""
    return WORDS["answerability_signals"].get(name, name.replace("_", " ").capitalize())
