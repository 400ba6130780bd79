"""Refitting the answerability model on an installation's own judged questions."""

import hashlib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np

from corecube.access import Principal, user_named
from corecube.errors import InvalidRequestError
from retrieval.evaluation.calibration import Floats, auroc, calibration_error, folds, reliability
from retrieval.evaluation.calibration_questions import JudgedQuestion
from retrieval.models import SearchRecord
from retrieval.ranking.answerability.logistic import Sample
from retrieval.ranking.answerability.model import AnswerabilityModel, fitted, shipped
from retrieval.search.request import SearchRequest
from retrieval.search.service import search

#: Questions of each kind without which nothing is fitted.
MIN_OF_EACH: Final = 30
_FOLDS: Final = 5
#: How strongly the weights are drawn to the shipped ones: as much as about four times as many questions would, since a
#: question tells at most a quarter about a weight.
_RIDGE: Final = 10.0


@dataclass(frozen=True, slots=True)
class Observed:
    """A judged question, asked."""

    text: str
    sample: Sample
    score_type: str


@dataclass(frozen=True, slots=True)
class Fit:
    """A model fitted on judged questions, and its figures."""

    model: AnswerabilityModel
    #: Cross-validated, the shipped model's on the same questions beside them.
    figures: dict[str, Any]


def observe(
    questions: Sequence[JudgedQuestion], *, preset: str, principal: Principal | None, progress: Callable[[], None]
) -> tuple[Observed, ...]:
    """Ask every question through the production path, and return those that found something.

    A question with a user is asked as that user, the others as `principal`. Their traces are not kept.
    Raises InvalidRequestError for a question that nobody asks, UnknownPrincipalError, and what a search raises.
    """
    askers = {user: Principal(user_named(user)) for user in {question.user for question in questions} - {""}}
    found: list[Observed] = []
    for question in questions:
        asker = askers.get(question.user, principal)
        if asker is None:
            raise InvalidRequestError("A question without a user needs --as USER.")
        outcome = search(SearchRequest(text=question.text, preset=preset), principal=asker)
        SearchRecord.objects.filter(pk=outcome.id).delete()
        judged = outcome.state.answerability
        if judged is not None and judged.signals:
            score_type = outcome.passages[0].hit.score_type.value
            found.append(Observed(question.text, Sample(judged.signals, question.answerable), score_type))
        progress()
    return tuple(found)


def calibrated(observed: Sequence[Observed], *, asked: int) -> Fit:
    """Return the model fitted on the questions whose final scores have the commonest type, and its figures.

    Raises InvalidRequestError with fewer than 30 of either kind.
    """
    score_type = Counter(it.score_type for it in observed).most_common(1)[0][0] if observed else ""
    kept = [it for it in observed if it.score_type == score_type]
    answerable = np.array([it.sample.answerable for it in kept], dtype=bool)
    held, others = int(answerable.sum()), int((~answerable).sum())
    if min(held, others) < MIN_OF_EACH:
        raise InvalidRequestError(
            f"{MIN_OF_EACH} questions of each kind are needed, that find anything and are scored alike;"
            f" there are {held} answerable and {others} not answerable ones."
        )
    confidences = _cross_validated(kept)
    before = np.array([shipped().confidence(it.sample.signals) for it in kept])
    figures = {
        **_figures(confidences, answerable),
        "answerable": held,
        "not_answerable": others,
        "left_out": asked - len(kept),
        "bins": [asdict(it) for it in reliability(confidences, answerable)],
        "shipped": _figures(before, answerable),
    }
    model = fitted([it.sample for it in kept], ridge=_RIDGE, prior=shipped(), score_type=score_type)
    return Fit(model, figures)


def _cross_validated(observed: Sequence[Observed]) -> Floats:
    """Return each question's confidence by a fit on the others' folds; the same question stands in one fold."""
    groups = [hashlib.sha256(it.text.strip().lower().encode()).hexdigest() for it in observed]
    order = sorted(range(len(groups)), key=lambda place: groups[place])
    fold = np.zeros(len(groups), dtype=int)
    fold[order] = folds([groups[place] for place in order], _FOLDS)
    confidences = np.zeros(len(observed))
    for number in range(_FOLDS):
        taught = [it.sample for it, own in zip(observed, fold, strict=True) if own != number]
        model = fitted(taught, ridge=_RIDGE, prior=shipped())
        for place in np.flatnonzero(fold == number).tolist():
            confidences[place] = model.confidence(observed[place].sample.signals)
    return confidences


def _figures(confidences: Floats, answerable: np.ndarray[Any, np.dtype[np.bool_]]) -> dict[str, float]:
    return {
        "auroc": round(auroc(confidences, answerable), 4),
        "ece": round(calibration_error(confidences, answerable), 4),
    }
