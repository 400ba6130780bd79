"""How well the confidence separates answerable from unanswerable questions. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import numpy as np

from retrieval.evaluation import calibration
from retrieval.evaluation.calibration import Bin, Floats, Interval, auroc, bootstrap, calibration_error, folds
from retrieval.ranking.answerability.logistic import Sample, Signals
from retrieval.ranking.answerability.model import AnswerabilityModel, fitted_from_nothing

FOLDS: Final = 5
RIDGE: Final = 30.0


class Condition(StrEnum):
    """Whether and why the answer of a question is missing."""

    ANSWERABLE = "answerable"
    ADVERSARIAL = "adversarial"  #: Nothing is removed, but the documents do not contain the answer.
    PASSAGE_REMOVED = "passage_removed"  #: Only the judged passages are removed; their topic is there.
    ARTICLE_REMOVED = "article_removed"  #: All passages with the title of the judged ones are removed.
    OTHER_DOMAIN = "other_domain"


@dataclass(frozen=True, slots=True)
class Measured:
    """The signals of one question under one condition."""

    condition: Condition
    group: str  #: Questions of one group have one topic and are not split between fitting and measuring.
    signals: Signals


#: Total weight of each condition in a fit. Half for answerable questions; of the others, the most frequent ones in
#: practice (the topic is there, the answer is not) weigh most.
SHARES: Final = {
    Condition.ANSWERABLE: 0.5,
    Condition.PASSAGE_REMOVED: 0.2,
    Condition.ADVERSARIAL: 0.2,
    Condition.ARTICLE_REMOVED: 0.06,
    Condition.OTHER_DOMAIN: 0.04,
}


@dataclass(frozen=True, slots=True)
class Row:
    """A condition compared with the answerable questions."""

    condition: Condition
    questions: int
    auroc: Interval


@dataclass(frozen=True, slots=True)
class Figures:
    """The figures of a fit."""

    rows: tuple[Row, ...]
    error: Interval  #: Expected calibration error over all conditions, measured on questions outside the fit.
    bins: tuple[Bin, ...]


def weighted(measured: Sequence[Measured]) -> list[Sample]:
    """Return the samples of a fit, weighted so that each condition has its share for any number of questions.

    If conditions are missing, the answerable questions and the others still have half of the weight each.
    """
    counts = {condition: sum(it.condition is condition for it in measured) for condition in Condition}
    others = sum(SHARES[it] for it in Condition if counts[it] and it is not Condition.ANSWERABLE)
    shares = {it: 0.5 if it is Condition.ANSWERABLE else 0.5 * SHARES[it] / others for it in Condition if counts[it]}
    weights = {it: len(measured) * share / counts[it] for it, share in shares.items()}
    return [Sample(it.signals, it.condition is Condition.ANSWERABLE, weights[it.condition]) for it in measured]


def out_of_fold(measured: Sequence[Measured], groups: Sequence[str], *, quick: bool) -> Floats:
    """Return each question's confidence from a fit on other groups; `quick` leaves the sentences' cosine out."""
    samples, fold = weighted(measured), folds(groups, FOLDS)
    confidences = np.zeros(len(measured))
    for number in range(FOLDS):
        training = [sample for sample, own in zip(samples, fold, strict=True) if own != number and sample.signals]
        model = fitted_from_nothing(training, ridge=RIDGE)
        for place in np.flatnonzero(fold == number).tolist():
            confidences[place] = _confidence(model, measured[place], quick=quick)
    return confidences


def figures(measured: Sequence[Measured], confidences: Floats) -> Figures:
    """Return the figures of the confidences."""
    answerable = np.array([it.condition is Condition.ANSWERABLE for it in measured])
    weights = np.array([sample.weight for sample in weighted(measured)])
    return Figures(
        rows=tuple(
            _row(measured, confidences, condition)
            for condition in Condition
            if condition is not Condition.ANSWERABLE and any(it.condition is condition for it in measured)
        ),
        error=bootstrap(
            lambda places: calibration_error(confidences[places], answerable[places], weights[places]), answerable
        ),
        bins=calibration.reliability(confidences, answerable, weights),
    )


def alone(measured: Sequence[Measured]) -> tuple[Row, ...]:
    """Return each condition compared with the answerable questions by a fit on these two only, on other groups."""
    found: list[Row] = []
    for condition in Condition:
        both = [it for it in measured if it.condition in {condition, Condition.ANSWERABLE}]
        if condition is not Condition.ANSWERABLE and len({it.condition for it in both}) > 1:
            found.extend(figures(both, out_of_fold(both, [it.group for it in both], quick=False)).rows)
    return tuple(found)


def judged_by(model: AnswerabilityModel, measured: Sequence[Measured]) -> Figures:
    """Return the figures of a model on questions that it was not fitted on."""
    return figures(measured, np.array([_confidence(model, it, quick=False) for it in measured]))


def _row(measured: Sequence[Measured], confidences: Floats, condition: Condition) -> Row:
    both = np.array([it.condition in {condition, Condition.ANSWERABLE} for it in measured])
    answerable = np.array([it.condition is Condition.ANSWERABLE for it in measured])[both]
    taken = confidences[both]
    area = bootstrap(lambda places: auroc(taken[places], answerable[places]), answerable)
    return Row(condition, int((~answerable).sum()), area)


def _confidence(model: AnswerabilityModel, question: Measured, *, quick: bool) -> float:
    if not question.signals:
        return 0.0
    fit = model.without_sentences if quick else model.for_signals(question.signals)
    return fit.probability(question.signals)
