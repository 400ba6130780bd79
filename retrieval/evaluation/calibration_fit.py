"""Calibrate the answerability model on an installation's judged questions."""

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from corecube.access import Principal, user_named
from corecube.errors import InvalidRequestError
from corecube.sanitise import storable
from retrieval.evaluation.calibration import Floats, auroc, calibration_error, folds, reliability
from retrieval.evaluation.datasets import load_dataset, read_lines
from retrieval.models import SearchRecord
from retrieval.ranking.answerability.logistic import Sample
from retrieval.ranking.answerability.model import AnswerabilityModel, fitted
from retrieval.search.request import SearchRequest
from retrieval.search.service import search

MIN_OF_EACH: Final = 30
_FOLDS: Final = 5
#: Regularization towards the shipped weights: as strong as about four times as many questions, since the information of
#: a question about a weight is at most a quarter.
_RIDGE: Final = 10.0


@dataclass(frozen=True, slots=True)
class JudgedQuestion:
    """A question, and whether the documents that its user may see answer it."""

    text: str
    answerable: bool
    user: str = ""  #: Empty for the user of the run.


def read_questions(path: Path) -> tuple[JudgedQuestion, ...]:
    """Return the questions of a JSON-lines file or of a judged collection in the BEIR layout, in order.

    A line is `{"question": ..., "answerable": true or false, "user": ...}`, the user is optional. In a collection a
    query with a judgment above 0 is answerable. Raises InvalidRequestError for missing or malformed input.
    """
    if path.is_dir():
        qrels = load_dataset(path).qrels
        texts = ((row["_id"], storable(str(row.get("text", "")))) for row in read_lines(path / "queries.jsonl"))
        return tuple(
            JudgedQuestion(text, any(grade > 0 for grade in qrels.get(query, {}).values()))
            for query, text in texts
            if text.strip()
        )
    if not path.is_file():
        raise InvalidRequestError(f"There is no file or folder {path}.")
    # As bytes, so that the error names a line with an invalid encoding.
    with path.open("rb") as file:
        lines = [(number, line) for number, line in enumerate(file, start=1) if line.strip()]
    return tuple(_question(line, f"{path.name}, line {number}") for number, line in lines)


def _question(line: bytes, place: str) -> JudgedQuestion:
    try:
        row: Any = json.loads(line.decode("utf-8-sig"))
        question = JudgedQuestion(row["question"], row["answerable"], row.get("user", ""))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise InvalidRequestError(f"{place}: expected an object with question and answerable.") from error
    if not (isinstance(question.text, str) and storable(question.text).strip()):
        raise InvalidRequestError(f"{place}: question must be a text.")
    if not isinstance(question.answerable, bool):
        raise InvalidRequestError(f"{place}: answerable must be true or false.")
    if not isinstance(question.user, str):
        raise InvalidRequestError(f"{place}: user must be a username.")
    return replace(question, text=storable(question.text), user=storable(question.user))


@dataclass(frozen=True, slots=True)
class Observed:
    """A judged question with the signals of its search."""

    text: str
    sample: Sample
    score_type: str


def observe(
    questions: Sequence[JudgedQuestion], *, preset: str, principal: Principal | None, progress: Callable[[], None]
) -> tuple[Observed, ...]:
    """Search for every question through the production path, and return those with hits.

    Each question uses its user, or `principal`. The traces are deleted.
    Raises InvalidRequestError for a question without either, UnknownPrincipalError, and as a search does.
    """
    users = {user: Principal(user_named(user)) for user in {question.user for question in questions} - {""}}
    found: list[Observed] = []
    for question in questions:
        searcher = users.get(question.user, principal)
        if searcher is None:
            raise InvalidRequestError("A question without a user needs --as USER.")
        outcome = search(SearchRequest(text=question.text, preset=preset), principal=searcher)
        SearchRecord.objects.filter(pk=outcome.id).delete()
        judged = outcome.state.answerability
        if judged is not None and judged.signals:
            score_type = outcome.passages[0].hit.score_type.value
            found.append(Observed(question.text, Sample(judged.signals, question.answerable), score_type))
        progress()
    return tuple(found)


def calibrated(
    observed: Sequence[Observed], *, prior: AnswerabilityModel, asked: int
) -> tuple[AnswerabilityModel, dict[str, Any]]:
    """Return the model fitted on the questions with the most frequent score type, and its figures.

    The figures are cross-validated, with those of the prior, the shipped model, on the same questions; `asked` is the
    number of all questions. Raises InvalidRequestError with fewer than 30 of either kind.
    """
    score_type = Counter(it.score_type for it in observed).most_common(1)[0][0] if observed else ""
    used = [it for it in observed if it.score_type == score_type]
    answerable = np.array([it.sample.answerable for it in used], dtype=bool)
    count, others = int(answerable.sum()), int((~answerable).sum())
    if min(count, others) < MIN_OF_EACH:
        raise InvalidRequestError(
            f"{MIN_OF_EACH} questions of each kind with hits and the same score type are needed;"
            f" there are {count} answerable and {others} not answerable ones."
        )
    # Cross-validation, with equal questions in one fold.
    groups = [hashlib.sha256(it.text.strip().lower().encode()).hexdigest() for it in used]
    order = sorted(range(len(groups)), key=lambda place: groups[place])
    fold = np.zeros(len(groups), dtype=int)
    fold[order] = folds([groups[place] for place in order], _FOLDS)
    confidences = np.zeros(len(used))
    for number in range(_FOLDS):
        training = [it.sample for it, own in zip(used, fold, strict=True) if own != number]
        trained = fitted(training, ridge=_RIDGE, prior=prior)
        for place in np.flatnonzero(fold == number).tolist():
            confidences[place] = trained.confidence(used[place].sample.signals)
    before = np.array([prior.confidence(it.sample.signals) for it in used])
    figures = {
        **_figures(confidences, answerable),
        "answerable": count,
        "not_answerable": others,
        "left_out": asked - len(used),
        "bins": [asdict(it) for it in reliability(confidences, answerable)],
        "shipped": _figures(before, answerable),
    }
    model = fitted([it.sample for it in used], ridge=_RIDGE, prior=prior, score_type=score_type)
    return model, figures


def _figures(confidences: Floats, answerable: np.ndarray[Any, np.dtype[np.bool_]]) -> dict[str, float]:
    return {
        "auroc": round(auroc(confidences, answerable), 4),
        "ece": round(calibration_error(confidences, answerable), 4),
    }
