"""Whether the passages answer the question: the verdict, its confidence, and the contribution of each signal."""

import math
from collections.abc import Iterator, Sequence
from typing import Any, Final

from explorer.components.bars import percent
from explorer.wording import WORDS
from retrieval.engine.types import Answerability
from retrieval.ranking.answerability.verdict import AnswerabilityConfig, Reason, partial_bound

VERDICTS: Final = WORDS["verdicts"]
TONES: Final = WORDS["verdict_tones"]
_MIDDLE: Final = 50.0  #: Percent; bars grow from here to both sides.


def answerability_panel(found: Answerability | None, config: AnswerabilityConfig) -> dict[str, Any] | None:
    """Return the verdict on a search with this configuration; None if the search timed out before."""
    if found is None:
        return None
    rows, contributions = tuple(_rows(found)), found.contributions.values()
    return {
        "verdict": VERDICTS[found.verdict],
        "tone": TONES[found.verdict],
        "confidence": found.confidence,
        "share": round(100 * found.confidence, 1),
        # The thresholds of the verdicts, in percent of the confidence bar.
        "partial_from": 100 * partial_bound(config, found.contributions or found.signals),
        "answerable_from": 100 * config.answerable_from,
        "is_calibrated": found.is_calibrated,
        "reason": WORDS["verdict_reasons"].get(found.reason, found.reason),
        "explanation": _weakness(found, config, rows) if found.reason == Reason.WEAK_MATCH else found.explanation,
        "rows": rows,
        "start": _signed(found.intercept),
        # Empty for a verdict whose contributions are unknown.
        "sum": _signed(found.intercept + math.fsum(contributions)) if contributions else "",
    }


def _weakness(found: Answerability, config: AnswerabilityConfig, rows: Sequence[dict[str, Any]]) -> str:
    """Return a confidence with its threshold, what was found, and the signal that lowers the confidence most."""
    lowering = next((row for row in rows if not row["is_for"]), None)
    lowered = f" Lowered most by: {lowering['label'].lower()}, {lowering['value']}." if lowering else ""
    threshold = f"Confidence {found.confidence:.2f}, answerable from {config.answerable_from:.2f}."
    return f"{threshold} {found.explanation}{lowered}"


def _rows(found: Answerability) -> Iterator[dict[str, Any]]:
    """Yield the signals of the confidence by size of contribution, then those that were not used."""
    full = 2 * max(map(abs, found.contributions.values()), default=0.0)
    for name in sorted(found.signals, key=lambda name: (-abs(found.contributions.get(name, 0.0)), name)):
        added = found.contributions.get(name)
        width = percent(abs(added or 0.0), full)
        yield {
            "label": signal_label(name),
            "value": f"{found.signals[name]:.2f}",
            "added": "" if added is None else _signed(added),
            "is_for": (added or 0.0) >= 0,
            "x": round(_MIDDLE if (added or 0.0) >= 0 else _MIDDLE - width, 2),
            "width": round(width, 2),
        }


def _signed(log_odds: float) -> str:
    return f"{log_odds:+.2f}".replace("-", "\N{MINUS SIGN}")


def signal_label(name: str) -> str:
    """Return a signal's label."""
    return WORDS["answerability_signals"].get(name, name.replace("_", " ").capitalize())
