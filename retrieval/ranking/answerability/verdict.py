"""From signals to a verdict with its reason. Pure."""

import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from retrieval.engine.state import DropReason, SearchState
from retrieval.engine.tunables import Tunables, costly, fraction
from retrieval.engine.types import Answerability, Term, Verdict
from retrieval.engine.words import stemmer
from retrieval.ranking.answerability.logistic import Signals
from retrieval.ranking.answerability.model import COSINES, AnswerabilityModel
from retrieval.ranking.answerability.signals import unknown_terms

_MUCH_UNKNOWN: Final = 0.2  #: Share of the question's weight that unknown terms must have to be the reason.
_MAX_NAMED: Final = 5
_WORD: Final = re.compile(r"\w[\w-]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerabilityConfig(Tunables):
    """When the passages are sufficient to answer a question."""

    answerable_from: float = fraction(0.84, help="Minimum confidence of an answerable question.")
    partial_from: float = fraction(
        0.15, help="Minimum confidence of a partly answerable question.", at_most="answerable_from"
    )
    partial_from_words: float = fraction(
        0.25,
        help="The same where the confidence reads no cosine: with an embedding model that it was not fitted for.",
        at_most="answerable_from",
    )
    sentences: int = costly(
        1,
        low=0,
        high=5,
        unit="passages",
        help="Number of first passages whose sentences are compared with the question by stored vectors; 0 for none.",
    )


class Reason(StrEnum):
    """Why a question is not answerable, or only in part, or has more than one answer."""

    NO_SCOPE = "no_scope"
    NOTHING_FOUND = "nothing_found"
    BELOW_FLOOR = "below_floor"
    FILTERED = "filtered"
    UNKNOWN_TERMS = "unknown_terms"
    WEAK_MATCH = "weak_match"
    CONFLICTING = "conflicting"


def judge(
    state: SearchState,
    signals: Signals,
    *,
    model: AnswerabilityModel,
    config: AnswerabilityConfig,
    disagreement: Callable[[], str] = str,
) -> Answerability:
    """Return the verdict on a search that packed passages.

    `disagreement` says how they contradict each other; it is called only where that can be the reason.
    """
    fit = model.for_signals(signals)
    confidence = fit.probability(signals)
    verdict = verdict_of(confidence, config, fit.weights)
    reason, explanation = ("", "") if verdict is Verdict.ANSWERABLE else _weakness(state, signals)
    if verdict is not Verdict.NOT_ANSWERABLE and (said := disagreement()):
        reason, explanation = Reason.CONFLICTING, said
    return Answerability(
        verdict=verdict,
        confidence=confidence,
        is_calibrated=model.is_calibrated,
        intercept=fit.intercept,
        signals=dict(signals),
        contributions=fit.contributions(signals),
        reason=reason,
        explanation=explanation,
    )


def nothing(state: SearchState, *, model: AnswerabilityModel) -> Answerability:
    """Return the verdict on a search without a passage: not answerable, with certainty."""
    reason, explanation = _absence(state)
    return Answerability(
        verdict=Verdict.NOT_ANSWERABLE,
        confidence=0.0,
        is_calibrated=model.is_calibrated,
        reason=reason,
        explanation=explanation,
    )


def verdict_of(confidence: float, config: AnswerabilityConfig, signals: Iterable[str]) -> Verdict:
    """Return the verdict for a confidence that reads these signals; one equal to a bound gets the better verdict."""
    if confidence >= config.answerable_from:
        return Verdict.ANSWERABLE
    return Verdict.PARTIAL if confidence >= partial_bound(config, signals) else Verdict.NOT_ANSWERABLE


def partial_bound(config: AnswerabilityConfig, signals: Iterable[str]) -> float:
    """Return the minimum confidence of a partly answerable question, for a confidence that reads these signals."""
    return config.partial_from_words if set(COSINES).isdisjoint(signals) else config.partial_from


def _absence(state: SearchState) -> tuple[Reason, str]:
    if not state.scope.included:
        return Reason.NO_SCOPE, "No connection is in scope. Nothing was searched."
    # Hits that the access check removed, or that may be out of scope, count as not found.
    dropped = [drop for drop in state.drops if not drop.is_nameless]
    if not dropped:
        return Reason.NOTHING_FOUND, f"None of the {state.terms.corpus_size} chunks in scope matched."
    if all(drop.reason is DropReason.BELOW_FLOOR for drop in dropped):
        return Reason.BELOW_FLOOR, f"All {len(dropped)} hits score below the floor."
    counts = sorted(Counter(drop.reason for drop in dropped).items())
    reasons = ", ".join(f"{count} {reason.replace('_', ' ')}" for reason, count in counts)
    return Reason.FILTERED, f"All hits were dropped: {reasons}."


def _weakness(state: SearchState, signals: Signals) -> tuple[Reason, str]:
    stem = stemmer(state.terms.language)
    unknown = [_as_written(term, state.query.text, stem) for term in unknown_terms(state.terms)]
    if unknown and signals.get("unknown_share", 0.0) >= _MUCH_UNKNOWN:
        named = ", ".join(f"“{word}”" for word in unknown[:_MAX_NAMED])
        more = f" and {len(unknown) - _MAX_NAMED} more" if len(unknown) > _MAX_NAMED else ""
        return Reason.UNKNOWN_TERMS, f"No document that was searched contains {named}{more}."
    cosine = f"the best cosine is {signals.get('cosine_best', 0.0):.2f}."
    if "coverage_passage" not in signals:
        return Reason.WEAK_MATCH, f"The query has no searchable term; {cosine}"
    passage, sentence = signals["coverage_passage"], signals.get("coverage_sentence", 0.0)
    found = f"Query terms found (by IDF): {passage:.0%} in the best passage, {sentence:.0%} in the best sentence"
    return Reason.WEAK_MATCH, f"{found.replace('%', ' %')}; {cosine}"


def _as_written(term: Term, question: str, stem: Callable[[str], str]) -> str:
    """Return the word of the question that a term was made of: by its stem, or else by its beginning."""
    words = _WORD.findall(question)
    beginning = term.lexeme[:-1] or term.lexeme
    alike = (word for word in words if word.lower().startswith(beginning))
    return next((word for word in words if stem(word.lower()) == term.lexeme), next(alike, term.lexeme))
