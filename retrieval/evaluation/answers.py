"""Measure answers: questions with known answers, each answered through the production path.

A question names requirements; each is a list of alternatives, one of which must appear in the answer. An answer is
right when all of its requirements appear within its first 700 characters, also when it is hedged.
"""

import json
import re
import tomllib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from time import perf_counter
from typing import Any, Final

from corecube.access import Principal, ScopeRequest, user_named
from corecube.errors import InvalidRequestError
from corecube.models import Connection
from retrieval.answers.answering import answered, prepare
from retrieval.answers.events import Done, Outcome
from retrieval.answers.extractive import ExtractiveProvider
from retrieval.answers.providers import route_for
from retrieval.engine.types import Verdict
from retrieval.errors import SearchTimeoutError
from retrieval.evaluation.corpus import evaluation_principal
from retrieval.evaluation.latency import Percentiles, percentiles
from retrieval.evaluation.runner import without_judge
from retrieval.index import active
from retrieval.llm.types import Route
from retrieval.models import SearchRecord
from retrieval.search import runtime
from retrieval.search.outcome import SearchOutcome
from retrieval.search.request import SearchRequest
from retrieval.search.service import search

MAX_CHARACTERS: Final = 700
QUOTES: Final = ExtractiveProvider.name
_TOP_K: Final = 10
_WARM_UP: Final = 3  #: Warm-up questions before the first timed one.
_MARKER: Final = re.compile(r" ?(?<!\\)\[\d+\]")
_QUOTED_LINE: Final = re.compile(r"^> ?", re.MULTILINE)
_THOUSANDS: Final = re.compile(r"(?<=\d)[,'’\u00a0\u202f](?=\d{3}(?!\d))")  # noqa: RUF001 -- a typographic apostrophe

_ALLOWED: Final[Mapping[Verdict, frozenset[Outcome]]] = {
    Verdict.ANSWERABLE: frozenset({Outcome.ASSERTED}),
    Verdict.PARTIAL: frozenset({Outcome.ASSERTED, Outcome.HEDGED}),
    Verdict.NOT_ANSWERABLE: frozenset({Outcome.HEDGED, Outcome.REFUSED}),
}

Requirements = tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class AnswerQuestion:
    """A question with known answers."""

    id: str
    text: str
    kind: str
    collection: str  #: The folder of files that it is about; empty for the sample company's.
    requirements: Requirements  #: Empty for an unanswerable question.
    asker: str = ""  #: Username; empty for the evaluation's.


@dataclass(frozen=True, slots=True)
class Answered:
    """A question's answer, and how it was judged."""

    question: AnswerQuestion
    text: str
    outcome: Outcome
    verdict: Verdict | None
    confidence: float | None
    right: bool  #: Whether all requirements appear; False for an unanswerable question.
    seconds: float  #: From the search's start to the end of the whole answer.

    @property
    def contradicts(self) -> bool:
        """Whether the verdict and the answer contradict each other."""
        return self.verdict is not None and contradicts(self.verdict, self.outcome)


def contradicts(verdict: Verdict, outcome: Outcome) -> bool:
    """Return whether a search's verdict and the outcome of its answer contradict each other."""
    return outcome not in _ALLOWED[verdict]


def load_questions(path: Path) -> tuple[AnswerQuestion, ...]:
    """Return the questions of a JSON-lines file, or of the sample company's `company.toml`.

    Raises InvalidRequestError for a missing or malformed file.
    """
    if not path.is_file():
        raise InvalidRequestError(f"There is no file {path}.")
    try:
        text = path.read_text(encoding="utf-8")
        if path.suffix == ".toml":
            return tuple(map(_sample_question, tomllib.loads(text)["question"]))
        return tuple(_question(json.loads(line)) for line in text.splitlines() if line.strip())
    except (ValueError, KeyError, TypeError) as error:
        raise InvalidRequestError(
            f"{path.name}: objects with id, question, kind, collection, answers are expected."
        ) from error


def _question(row: Mapping[str, Any]) -> AnswerQuestion:
    requirements = tuple(tuple(alternatives) for alternatives in row["answers"])
    return AnswerQuestion(str(row["id"]), str(row["question"]), row["kind"], row["collection"], requirements)


def _sample_question(row: Mapping[str, Any]) -> AnswerQuestion:
    requirements = tuple(tuple(alternatives) for alternatives in row.get("answers", ()))
    return AnswerQuestion(row["id"], row["text"], row["kind"], "", requirements, asker=row["user"])


def measured_answers(
    questions: Sequence[AnswerQuestion],
    connections: Mapping[str, Connection],
    *,
    preset: str,
    uses_models: bool,
    progress: Callable[[], None] = lambda: None,
) -> tuple[Answered, ...]:
    """Answer every question, one after the other; `connections` has each collection's.

    Without `uses_models` no language model is called. Raises InvalidRequestError for an unknown user.
    """
    principals = {it.asker: Principal(user_named(it.asker)) if it.asker else evaluation_principal() for it in questions}

    def ask(question: AnswerQuestion) -> Answered:
        principal = principals[question.asker]
        include = (connections[question.collection].slug,) if question.collection else ()
        return _answered(question, principal, ScopeRequest(include=include), preset=preset, uses_models=uses_models)

    for question in questions[:_WARM_UP]:
        ask(question)
    found = []
    for question in questions:
        found.append(ask(question))
        progress()
    SearchRecord.objects.filter(user=evaluation_principal().user).delete()
    return tuple(found)


def _answered(
    question: AnswerQuestion, principal: Principal, narrowing: ScopeRequest, *, preset: str, uses_models: bool
) -> Answered:
    # Passing the encoder avoids the cache of query vectors.
    resources = runtime.resources(active.encoder())
    request = SearchRequest(text=question.text, preset=preset, top_k=_TOP_K, narrowing=narrowing)
    started = perf_counter()
    try:
        outcome = search(request, principal=principal, resources=resources if uses_models else without_judge(resources))
    except SearchTimeoutError:
        return Answered(question, "", Outcome.REFUSED, None, None, right=False, seconds=perf_counter() - started)
    done = written(outcome, principal, model="" if uses_models else QUOTES)
    seconds = perf_counter() - started
    judged = outcome.state.answerability
    return Answered(
        question,
        done.text,
        done.outcome,
        judged.verdict if judged else None,
        judged.confidence if judged else None,
        right=not done.refused and is_right(done.text, question.requirements),
        seconds=seconds,
    )


def written(
    outcome: SearchOutcome, principal: Principal, *, model: str = "", usage_ids: list[int] | None = None
) -> Done:
    """Return the answer to a search as users get it, or by the language model with a slug, or as `QUOTES`.

    Routing rules hold for a named model too. The keys of the stored usage are added to `usage_ids`. Raises
    CoreCubeError without an answer.
    """
    route = route_for(principal, outcome.passages, preferred=model, usage_ids=usage_ids)
    if model == QUOTES:
        route = Route(route.providers[-1:])
    return answered(prepare(outcome, principal, route=route))


def is_right(answer: str, requirements: Requirements) -> bool:
    """Return whether an answer in Markdown meets every requirement within its first 700 characters; False for none.

    Compared without case, markers, quotation signs, separators of thousands and differences of white space.
    """
    text = _QUOTED_LINE.sub("", _MARKER.sub("", answer[:MAX_CHARACTERS])).replace("\\[", "[")
    return bool(requirements) and share_met(text, requirements) == 1


def share_met(text: str, requirements: Requirements) -> float:
    """Return the share of the requirements that a text meets, 0 to 1; expects one at least."""
    normalised = _normalised(text)
    return fmean(any(_normalised(it) in normalised for it in alternatives) for alternatives in requirements)


def _normalised(text: str) -> str:
    return " ".join(_THOUSANDS.sub("", text).split()).casefold()


def figures(preset: str, found: Sequence[Answered]) -> dict[str, Any]:
    """Return the measures of the answers, in total and by kind and collection, and each answer, for JSON."""
    return {
        "preset": preset,
        "questions": len(found),
        "measures": _measures(found),
        "latency_ms": latency(found),
        "kinds": {name: counts(rows) for name, rows in grouped(found, lambda it: it.kind)},
        "collections": {name: counts(rows) for name, rows in grouped(found, lambda it: it.collection)},
        "answers": [_row(it) for it in found],
    }


def _measures(found: Sequence[Answered]) -> dict[str, float | None]:
    answerable = [it for it in found if it.question.requirements]
    unanswerable = [it for it in found if not it.question.requirements]
    return {
        "answerable_right": _share(it.right for it in answerable),
        "answerable_hedged": _share(it.outcome is Outcome.HEDGED for it in answerable),
        "answerable_refused": _share(it.outcome is Outcome.REFUSED for it in answerable),
        "unanswerable_not_asserted": _share(it.outcome is not Outcome.ASSERTED for it in unanswerable),
        "unanswerable_refused": _share(it.outcome is Outcome.REFUSED for it in unanswerable),
        "contradictions": _share(it.contradicts for it in found),
    }


def _share(values: Iterable[bool]) -> float | None:
    held = list(values)
    return round(sum(held) / len(held), 4) if held else None


def latency(found: Sequence[Answered]) -> Percentiles:
    """Return the percentiles of the time to the whole answer."""
    return percentiles([it.seconds * 1000 for it in found])


def grouped(
    found: Sequence[Answered], key: Callable[[AnswerQuestion], str]
) -> Iterator[tuple[str, Sequence[Answered]]]:
    """Yield the answers by a property of their questions, in the order of its first appearance."""
    groups: defaultdict[str, list[Answered]] = defaultdict(list)
    for it in found:
        groups[key(it.question)].append(it)
    yield from groups.items()


def counts(found: Sequence[Answered]) -> dict[str, int]:
    """Return how many answers there are, how many are right, wrong although asserted or hedged, hedged and refused.

    Of unanswerable questions those are right that are not asserted.
    """
    right = sum(it.right if it.question.requirements else it.outcome is not Outcome.ASSERTED for it in found)
    refused = [it for it in found if it.outcome is Outcome.REFUSED]
    wrongly_refused = sum(bool(it.question.requirements) for it in refused)
    return {
        "questions": len(found),
        "right": right,
        "wrong": len(found) - right - wrongly_refused,
        "hedged": sum(it.outcome is Outcome.HEDGED for it in found),
        "refused": len(refused),
    }


def _row(it: Answered) -> dict[str, Any]:
    return {
        "id": it.question.id,
        "question": it.question.text,
        "outcome": it.outcome,
        "right": it.right,
        "verdict": it.verdict,
        "confidence": it.confidence,
        "answer": it.text,
    }
