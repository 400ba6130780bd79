"""The answer to a case of a question set, written as users get it and measured; its text is not stored."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from decimal import Decimal
from time import perf_counter
from typing import Any, Final, Self

from django.db.models import F, Sum

from corecube.access import Principal
from corecube.errors import InvalidRequestError
from corecube.sanitise import storable
from retrieval.answers.events import Done, Outcome
from retrieval.answers.faithfulness import supported_share
from retrieval.engine.types import Verdict
from retrieval.evaluation.answers import Requirements, contradicts, is_right, written
from retrieval.models import Case, Usage
from retrieval.search.outcome import SearchOutcome

_MAX_REQUIREMENTS: Final = 10
_MAX_ALTERNATIVES: Final = 10
_MAX_LENGTH: Final = 200
_NEXT: Final = ";"  #: Between requirements.
_OR: Final = "|"  #: Between alternatives.
_FELL_BACK: Final = "fell_back"


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerMeasures:
    """What is known of an answer: 0 or 1, or a share between; 1 is best. None where there is nothing to measure."""

    right: float | None = None  #: Whether it contains all that is expected; None without an expected answer.
    answered: float | None = None  #: Whether a question that is known to be answerable is not refused.
    not_asserted: float | None = None  #: Whether the answer to an unanswerable question is refused or hedged.
    consistent: float | None = None  #: Whether it agrees with the verdict; None without one.
    supported: float | None = None  #: Share of its sentences that their passages support; None for quotes.


ANSWER_MEASURES: Final = tuple(it.name for it in fields(AnswerMeasures))


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerFigures:
    """What is stored of an answer."""

    outcome: Outcome
    measures: AnswerMeasures
    provider: str  #: The slug of the language model that wrote it; "extractive" for quotes.
    milliseconds: float  #: From the end of the search to the end of the answer.

    @classmethod
    def of_json(cls, stored: Mapping[str, Any]) -> Self:
        """Return the figures that `dataclasses.asdict` made into JSON."""
        facts = {"outcome": Outcome(stored["outcome"]), "measures": AnswerMeasures(**stored["measures"])}
        return cls(**{**stored, **facts})


@dataclass(frozen=True, slots=True)
class Spent:
    """What language models took."""

    tokens: int = 0
    cost: Decimal = field(default_factory=Decimal)  #: In the installation's currency, at the prices of that time.

    def __add__(self, other: "Spent") -> "Spent":
        return Spent(self.tokens + other.tokens, self.cost + other.cost)


NOTHING_SPENT: Final = Spent()


def spent_on(usage_ids: Sequence[int]) -> Spent:
    """Return what the stored usage records sum up to."""
    if not usage_ids:
        return NOTHING_SPENT
    tokens = Sum(F("prompt_tokens") + F("completion_tokens"))
    found = Usage.objects.filter(pk__in=usage_ids).aggregate(tokens=tokens, cost=Sum("cost"))
    return Spent(found["tokens"] or 0, found["cost"] or Decimal())


def answered_case(
    case: Case, outcome: SearchOutcome, principal: Principal, *, model: str, usage_ids: list[int]
) -> tuple[AnswerFigures, tuple[str, ...]]:
    """Return the figures of the answer to a case's search, and the codes of what it was written without.

    `model` is a language model's slug, "extractive" for quotes, empty for what users get. The keys of the stored usage
    are added to `usage_ids`. Raises CoreCubeError without an answer.
    """
    started, judged = perf_counter(), outcome.state.answerability
    done = written(outcome, principal, model=model, usage_ids=usage_ids)
    figures = AnswerFigures(
        outcome=done.outcome,
        measures=_measures(case, done, judged.verdict if judged else None),
        provider=done.provider,
        milliseconds=(perf_counter() - started) * 1000,
    )
    return figures, tuple({it.code for it in done.notices} & {_FELL_BACK})


def unanswered(case: Case) -> AnswerFigures:
    """Return the figures of a case that got no answer: it counts as a refusal."""
    measures = AnswerMeasures(not_asserted=1.0)
    if case.is_answerable:
        measures = AnswerMeasures(right=0.0 if case.answers else None, answered=0.0)
    return AnswerFigures(outcome=Outcome.REFUSED, measures=measures, provider="", milliseconds=0.0)


def _measures(case: Case, done: Done, verdict: Verdict | None) -> AnswerMeasures:
    consistent = None if verdict is None else float(not contradicts(verdict, done.outcome))
    supported = supported_share(done)
    if not case.is_answerable:
        not_asserted = float(done.outcome is not Outcome.ASSERTED)
        return AnswerMeasures(not_asserted=not_asserted, consistent=consistent, supported=supported)
    expected = expected_of(case)
    return AnswerMeasures(
        right=float(not done.refused and is_right(done.text, expected)) if expected else None,
        answered=float(not done.refused),
        consistent=consistent,
        supported=supported,
    )


def expected_of(case: Case) -> Requirements:
    """Return what the answer to a case must contain; empty for nothing."""
    return tuple(map(tuple, case.answers))


def expected_in(text: str) -> Requirements:
    """Return what an answer must contain: requirements separated by ";", alternatives of one by "|".

    Raises as `checked_expected` does.
    """
    return checked_expected(part.split(_OR) for part in text.split(_NEXT))


def checked_expected(requirements: Iterable[Iterable[str]]) -> Requirements:
    """Return requirements without blanks around the alternatives and without empty ones.

    Raises InvalidRequestError for too many or too long ones.
    """
    cleaned = [tuple(filter(None, (" ".join(storable(it).split()) for it in one))) for one in requirements]
    found = tuple(filter(None, cleaned))
    is_long = any(len(it) > _MAX_LENGTH for one in found for it in one)
    if len(found) > _MAX_REQUIREMENTS or any(len(one) > _MAX_ALTERNATIVES for one in found) or is_long:
        raise InvalidRequestError(
            f"An expected answer can have at most {_MAX_REQUIREMENTS} parts of {_MAX_ALTERNATIVES} alternatives,"
            f" each of up to {_MAX_LENGTH} characters."
        )
    return found


def expected_text(requirements: Iterable[Iterable[str]]) -> str:
    """Return requirements as `expected_in` reads them."""
    return f" {_NEXT} ".join(f" {_OR} ".join(one) for one in requirements)
