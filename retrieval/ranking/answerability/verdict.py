"""From signals to a verdict with its reason. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from retrieval.engine.state import Drop, DropReason, SearchState
from retrieval.engine.tunables import Tunables, tunable
from retrieval.engine.types import Answerability, Term, Verdict
from retrieval.ranking.answerability.logistic import Signals
from retrieval.ranking.answerability.model import AnswerabilityModel

#: Share of the question's weight that unknown terms must have to be the reason.
_MUCH_UNKNOWN: Final = 0.2
_MAX_NAMED: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerabilityConfig(Tunables):
    """When the passages are sufficient to answer a question."""

    answerable_from: float = tunable(0.6, low=0.0, high=1.0, help="Minimum confidence of an answerable question.")
    partial_from: float = tunable(
        0.3, low=0.0, high=1.0, help="Minimum confidence of a partly answerable question.", at_most="answerable_from"
    )
    sentences: int = tunable(
        2,
        low=0,
        high=5,
        unit="sentences",
        help="Number of top sentences that the encoder compares with the question; 0 for none.",
        costs=True,
    )


class Reason(StrEnum):
    """Why a question is not answerable, or only in part."""

    NO_SCOPE = "no_scope"
    NOTHING_FOUND = "nothing_found"
    BELOW_FLOOR = "below_floor"
    FILTERED = "filtered"
    UNKNOWN_TERMS = "unknown_terms"
    WEAK_MATCH = "weak_match"


@dataclass(frozen=True, slots=True)
class Why:
    """A reason and the sentence with its facts."""

    reason: Reason
    explanation: str


def judge(
    state: SearchState, signals: Signals, *, model: AnswerabilityModel, config: AnswerabilityConfig
) -> Answerability:
    """Return the verdict on a search that packed passages."""
    fit = model.for_signals(signals)
    confidence = fit.probability(signals)
    verdict = verdict_of(confidence, config)
    why = None if verdict is Verdict.ANSWERABLE else _weakness(state, signals)
    return Answerability(
        verdict=verdict,
        confidence=confidence,
        is_calibrated=model.is_calibrated,
        signals=dict(signals),
        contributions=fit.contributions(signals),
        reason=why.reason if why else "",
        explanation=why.explanation if why else "",
    )


def nothing(state: SearchState, *, model: AnswerabilityModel) -> Answerability:
    """Return the verdict on a search without a passage: not answerable, with certainty."""
    why = _absence(state)
    return Answerability(
        verdict=Verdict.NOT_ANSWERABLE,
        confidence=0.0,
        is_calibrated=model.is_calibrated,
        reason=why.reason,
        explanation=why.explanation,
    )


def verdict_of(confidence: float, config: AnswerabilityConfig) -> Verdict:
    """Return the verdict that a confidence stands for; a bound belongs to the better one."""
    if confidence >= config.answerable_from:
        return Verdict.ANSWERABLE
    return Verdict.PARTIAL if confidence >= config.partial_from else Verdict.NOT_ANSWERABLE


def _absence(state: SearchState) -> Why:
    if not state.scope.included:
        return Why(Reason.NO_SCOPE, "No connection is in scope. Nothing was searched.")
    # A hit that access stopped, or that may be out of scope, is as if it had never been found.
    dropped = [drop for drop in state.drops if not drop.is_nameless]
    if not dropped:
        return Why(Reason.NOTHING_FOUND, f"None of the {state.terms.corpus_size} chunks in scope matched.")
    if all(drop.reason is DropReason.BELOW_FLOOR for drop in dropped):
        return Why(Reason.BELOW_FLOOR, f"All {len(dropped)} hits score below the floor.")
    return Why(Reason.FILTERED, f"All hits were dropped: {_counts(dropped)}.")


def _counts(drops: Sequence[Drop]) -> str:
    """Return how many hits each reason took: "12 quality, 3 below floor"."""
    reasons = [drop.reason for drop in drops]
    return ", ".join(f"{reasons.count(reason)} {reason.replace('_', ' ')}" for reason in sorted(set(reasons)))


def _weakness(state: SearchState, signals: Signals) -> Why:
    """Return why the passages fall short: words that no document in scope contains, or too weak a match."""
    unknown = [term for term in state.terms.terms if not term.document_frequency]
    if unknown and signals.get("unknown_share", 0.0) >= _MUCH_UNKNOWN:
        return Why(Reason.UNKNOWN_TERMS, _unknown(unknown))
    return Why(Reason.WEAK_MATCH, _strength(signals))


def _strength(signals: Signals) -> str:
    cosine = f"the best cosine is {signals.get('cosine_best', 0.0):.2f}."
    if "coverage_passage" not in signals:
        return f"The query has no searchable term; {cosine}"
    passage, sentence = signals["coverage_passage"], signals.get("coverage_sentence", 0.0)
    best = f"Best passage covers {passage:.0%} of query terms, best sentence {sentence:.0%}"
    return f"{best.replace('%', ' %')} (IDF-weighted); {cosine}"


def _unknown(terms: Sequence[Term]) -> str:
    named = ", ".join(f"“{term.lexeme}”" for term in terms[:_MAX_NAMED])
    more = f" and {len(terms) - _MAX_NAMED} more" if len(terms) > _MAX_NAMED else ""
    return f"No document contains {named}{more}."
