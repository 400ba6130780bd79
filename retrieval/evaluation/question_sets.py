"""Question sets: add, mark and delete cases, each change an audit event, and measure a preset on them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean
from time import perf_counter
from typing import Final
from uuid import UUID

import numpy as np
from django.db import transaction
from django.db.models import F
from django.utils.text import slugify

from corecube import audit
from corecube.access import Principal, ScopeRequest, scope_for
from corecube.errors import CoreCubeError, InvalidRequestError, NotPermittedError
from corecube.models import User
from corecube.sanitise import storable
from retrieval.engine.types import Verdict
from retrieval.errors import JudgingError, SearchTimeoutError
from retrieval.evaluation.answers import Requirements
from retrieval.evaluation.calibration import Bin, auroc, calibration_error, reliability
from retrieval.evaluation.case_answers import (
    NOTHING_SPENT,
    AnswerFigures,
    AnswerMeasures,
    Spent,
    answered_case,
    expected_of,
    spent_on,
    unanswered,
)
from retrieval.evaluation.latency import Percentiles, percentiles
from retrieval.evaluation.model_grades import grade_unjudged
from retrieval.evaluation.use_grades import UseGrades
from retrieval.models import Case, QuestionSet, SearchRecord, Usage
from retrieval.ranking.measures import MEASURED_DEPTH, Measures, mean, measure
from retrieval.records.judgments import MAX_QUERY_LENGTH, PassageId, grades_of, ranked_passages
from retrieval.search.outcome import SearchOutcome
from retrieval.search.request import SearchRequest
from retrieval.search.service import search
from retrieval.stages.resources import Resources

MAX_CASES: Final = 5000
_MAX_NAME_LENGTH: Final = 120
_MAX_SLUG_LENGTH: Final = 50
_MAX_TAGS: Final = 10
_MAX_TAG_LENGTH: Final = 40
_ALL_LISTED: Final = ScopeRequest()  #: All but files attached to conversations.


def set_named(name: str, *, actor: User) -> QuestionSet:
    """Return the set with a name, created if missing; raise InvalidRequestError for an invalid name."""
    name = " ".join(storable(name).split())[:_MAX_NAME_LENGTH]
    slug = slugify(name)[:_MAX_SLUG_LENGTH].strip("-_")
    if not slug:
        raise InvalidRequestError("The name of a question set needs a letter or a digit.")
    with transaction.atomic():
        found, is_new = QuestionSet.objects.get_or_create(slug=slug, defaults={"name": name})
        if is_new:
            audit.record("question_set.created", actor=actor, subject=slug)
    return found


@dataclass(frozen=True, slots=True)
class CaseFacts:
    """What is known of a question beside its text."""

    is_answerable: bool = True
    user: User | None = None  #: Whose access it is searched with.
    tags: tuple[str, ...] = ()
    record: SearchRecord | None = None  #: The search that it comes from.
    answers: Requirements = ()  #: What its answer must contain.


_NO_FACTS: Final = CaseFacts()


def tags_in(text: str) -> tuple[str, ...]:
    """Return the tags in a text, separated by commas; raise InvalidRequestError for too many or too long ones."""
    tags = tuple(dict.fromkeys(tag for it in storable(text).split(",") if (tag := " ".join(it.split()))))
    if len(tags) > _MAX_TAGS or any(len(it) > _MAX_TAG_LENGTH for it in tags):
        raise InvalidRequestError(f"A case can have at most {_MAX_TAGS} tags of up to {_MAX_TAG_LENGTH} characters.")
    return tags


def save_case(question_set: QuestionSet, query: str, *, actor: User, facts: CaseFacts = _NO_FACTS) -> tuple[Case, bool]:
    """Return a question's case, and whether it is new; one that exists gets what its answer must contain, if given.

    Raises InvalidRequestError for no question and a full set.
    """
    query = cut(query)
    if not query:
        raise InvalidRequestError("A case needs a question.")
    with transaction.atomic():
        QuestionSet.objects.select_for_update().get(pk=question_set.pk)
        if found := question_set.cases.filter(query=query).first():
            if facts.answers:
                expect(found, facts.answers, actor=actor)
            return found, False
        if question_set.cases.count() >= MAX_CASES:
            raise InvalidRequestError(f"A question set can have at most {MAX_CASES:,} cases.")
        case = Case.objects.create(
            question_set=question_set,
            query=query,
            is_answerable=facts.is_answerable,
            user=facts.user,
            tags=list(facts.tags),
            record=facts.record,
            answers=facts.answers,
            created_by=actor,
        )
        note_change(question_set)
        audit.record("case.saved", actor=actor, subject=question_set.slug, case=str(case.pk))
    return case, True


def mark_case(case: Case, *, is_answerable: bool, actor: User) -> None:
    """Set whether the documents answer a case's question."""
    case.is_answerable = is_answerable
    with transaction.atomic():
        case.save(update_fields=["is_answerable"])
        note_change(case.question_set)
        audit.record(
            "case.marked", actor=actor, subject=case.question_set.slug, case=str(case.pk), is_answerable=is_answerable
        )


def expect(case: Case, answers: Requirements, *, actor: User) -> None:
    """Set what the answer to a case must contain; empty for nothing."""
    if expected_of(case) == answers:
        return
    case.answers = answers
    with transaction.atomic():
        case.save(update_fields=["answers"])
        note_change(case.question_set)
        audit.record("case.expected", actor=actor, subject=case.question_set.slug, case=str(case.pk))


def delete_case(case: Case, *, actor: User) -> None:
    """Delete a case; the judgments of its question stay."""
    with transaction.atomic():
        audit.record("case.deleted", actor=actor, subject=case.question_set.slug, case=str(case.pk))
        case.delete()
        note_change(case.question_set)


def note_change(question_set: QuestionSet) -> None:
    """Count a change of a set's cases."""
    QuestionSet.objects.filter(pk=question_set.pk).update(version=F("version") + 1)


def delete_set(question_set: QuestionSet, *, actor: User) -> None:
    """Delete a set with its cases; the judgments of their questions stay."""
    with transaction.atomic():
        audit.record("question_set.deleted", actor=actor, subject=question_set.slug, cases=question_set.cases.count())
        question_set.delete()


def cut(query: str) -> str:
    """Return a question as stored in a case: trimmed, and cut to the maximum query length."""
    return storable(query).strip()[:MAX_QUERY_LENGTH].strip()


@dataclass(frozen=True, slots=True)
class CaseResult:
    """The result of a case."""

    case: UUID | None  #: None for one that was deleted since.
    query: str
    is_answerable: bool
    measures: Measures | None  #: None for a case that the documents do not answer.
    verdict: Verdict | None  #: None if the deadline passed first.
    confidence: float | None = None
    ranking: tuple[PassageId, ...] = ()  #: What was measured, best first.
    grades: Mapping[PassageId, int] = field(default_factory=dict)  #: All that the principal may see.
    other_grades: int = 0  #: Of the grades, those of a language model or from use.
    milliseconds: float = 0.0
    tokens: int = 0  #: Of the packed context.
    degraded: tuple[str, ...] = ()  #: Codes of what the search and the answer went without.
    answer: AnswerFigures | None = None  #: None if it was not answered.
    has_expected: bool = False  #: Whether the case has an expected answer.
    spent: Spent = NOTHING_SPENT  #: On language models.
    #: The preset's version, and the fingerprint of its stages and numbers; None and empty for a search that timed out.
    version: int | None = None
    fingerprint: str = ""
    values: Mapping[str, float] | None = None  #: Its numbers that differ from the shipped defaults.

    @property
    def is_measured(self) -> bool:
        """Whether its ranking has measures: a passage is graded above 0."""
        return self.measures is not None and self.measures.ndcg is not None

    @property
    def is_known(self) -> bool:
        """Whether anybody knows if the documents answer it: by its mark, a grade above 0, or an expected answer."""
        return not self.is_answerable or self.has_expected or self.is_measured

    @property
    def is_refused(self) -> bool:
        """Whether an answer would be refused."""
        return self.verdict is Verdict.NOT_ANSWERABLE


@dataclass(frozen=True, slots=True)
class Answerability:
    """How well the confidences of a set tell its answerable questions from the others."""

    auroc: float
    calibration_error: float
    bins: tuple[Bin, ...]


@dataclass(frozen=True, slots=True)
class SetResult:
    """The result of a set."""

    preset: str
    cases: tuple[CaseResult, ...]

    @property
    def means(self) -> Measures:
        """The mean of each measure over the answerable cases with it."""
        return mean([case.measures for case in self.cases if case.measures is not None], Measures)

    @property
    def answers(self) -> tuple[AnswerFigures, ...]:
        """The answers."""
        return tuple(case.answer for case in self.cases if case.answer is not None)

    @property
    def answer_means(self) -> AnswerMeasures:
        """The mean of each measure over the answers with it."""
        return mean([it.measures for it in self.answers], AnswerMeasures)

    @property
    def answer_milliseconds(self) -> Percentiles:
        """Percentiles of the times of the answers, from the end of the search."""
        return percentiles([it.milliseconds for it in self.answers])

    @property
    def spent(self) -> Spent:
        """What language models took in all."""
        return sum((case.spent for case in self.cases), NOTHING_SPENT)

    @property
    def measured(self) -> int:
        """The number of answerable cases with judgments."""
        return sum(case.is_measured for case in self.cases)

    @property
    def grades(self) -> tuple[int, int]:
        """The number of grades by a language model or from use, and of all grades."""
        return sum(it.other_grades for it in self.cases), sum(len(it.grades) for it in self.cases)

    @property
    def refusals(self) -> tuple[int, int]:
        """The number of refused unanswerable cases, and of all unanswerable cases."""
        return self._refused(answerable=False)

    @property
    def wrongly_refused(self) -> tuple[int, int]:
        """The number of refused cases that are known to be answerable, and of all of these."""
        return self._refused(answerable=True)

    @property
    def answerability(self) -> Answerability | None:
        """How good the confidences are; None without questions of both kinds."""
        known = [it for it in self.cases if it.is_known]
        judged = [(it.confidence, it.is_answerable) for it in known if it.confidence is not None]
        if len({is_answerable for _, is_answerable in judged}) < 2:  # noqa: PLR2004 -- both
            return None
        confidences, answerable = np.array([it for it, _ in judged]), np.array([it for _, it in judged])
        return Answerability(
            auroc(confidences, answerable),
            calibration_error(confidences, answerable),
            reliability(confidences, answerable),
        )

    @property
    def milliseconds(self) -> Percentiles:
        """Percentiles of the times of the searches."""
        return percentiles([case.milliseconds for case in self.cases])

    @property
    def tokens(self) -> float:
        """The mean size of the packed context; 0 without cases."""
        return fmean([case.tokens for case in self.cases]) if self.cases else 0.0

    @property
    def degraded(self) -> int:
        """The number of searches that went without something."""
        return sum(bool(case.degraded) for case in self.cases)

    def _refused(self, *, answerable: bool) -> tuple[int, int]:
        cases = [case for case in self.cases if case.is_known and case.is_answerable == answerable]
        return sum(case.is_refused for case in cases), len(cases)


def measure_cases(
    cases: Sequence[Case], *, preset: str, principal: Principal, resources: Resources | None = None
) -> SetResult:
    """Search for every case and return the results; without `resources` with those of the installation.

    The searches take the production path with the principal's access and leave no record. Raises as `search` does.
    """
    asked = SearchRequest(text="", preset=preset)
    return SetResult(preset, tuple(measured_case(it, asked, principal=principal, resources=resources) for it in cases))


def principal_of_case(case: Case, principal: Principal) -> Principal:
    """Return whose access a case is searched with; raise NotPermittedError for a user who was deactivated."""
    if case.user is None or case.user == principal.user:
        return principal
    if not case.user.is_active:
        raise NotPermittedError(f"The user {case.user.username} of a case is deactivated.")
    return Principal(case.user, actor=principal.user)


def searched_connections(searcher: Principal) -> list[int]:
    """Return the ids of the connections that cases are searched in: none holds the files of a conversation."""
    return scope_for(searcher, _ALL_LISTED).connection_ids


def unrecorded_search(
    asked: SearchRequest,
    *,
    principal: Principal,
    resources: Resources | None = None,
    usage_ids: list[int] | None = None,
) -> SearchOutcome:
    """Search as `search` does, and leave no record; the keys of the usage of judging models go to `usage_ids`."""
    outcome = search(asked, principal=principal, resources=resources)
    if usage_ids is not None:
        usage_ids += Usage.objects.filter(record=outcome.id).values_list("pk", flat=True)
    SearchRecord.objects.filter(pk=outcome.id).delete()
    return replace(outcome, is_recorded=False, pending=None)


@dataclass(frozen=True, slots=True)
class Measuring:
    """What of a case is measured, beside its ranking by people's grades."""

    counts_model: bool = False  #: A language model grades those of the first ten passages that nobody has judged.
    use: UseGrades | None = None  #: Grades for passages that nobody has judged.
    #: The language model that answers, by its slug, or an empty one for what users get; None for no answer.
    answered_by: str | None = None


RANKING: Final = Measuring()


def measured_case(
    case: Case,
    asked: SearchRequest,
    *,
    principal: Principal,
    resources: Resources | None = None,
    how: Measuring = RANKING,
) -> CaseResult:
    """Search for a case as `asked`, and return its result; one whose search timed out found nothing.

    If a language model fails to grade or to answer, the result is degraded.

    A case with a user is searched with that user's access. The grades are those that the principal gives, within the
    access of the search. Raises as `search` does, and NotPermittedError for a user who was deactivated.
    """
    searcher = principal_of_case(case, principal)
    asked = replace(asked, narrowing=_ALL_LISTED)
    usage_ids: list[int] = []
    result, outcome = _searched(case, asked, searcher, resources, usage_ids)
    if how.answered_by is not None:
        answer, without = _answered(case, outcome, searcher, how.answered_by, usage_ids)
        result = replace(result, answer=answer, degraded=(*result.degraded, *without))
    result = replace(result, spent=spent_on(usage_ids))
    if not case.is_answerable:
        return result
    scope = outcome.state.scope if outcome else scope_for(searcher)
    graded = grades_of(case.query, viewer=principal.user, scope=scope, counts_model=how.counts_model)
    if how.counts_model and outcome:
        try:
            grade_unjudged(outcome, graded, principal=searcher, by=principal.user)
        except JudgingError as error:
            result = replace(result, degraded=(*result.degraded, error.code))
        graded = grades_of(case.query, viewer=principal.user, scope=scope, counts_model=True)
    found = ranked_passages(outcome) if outcome else ()
    used = how.use.within(scope, [case.query]) if how.use else {}
    other = {passage: it.grade for (_, passage), it in used.items() if passage not in graded}
    grades = {passage: it.grade for passage, it in graded.items()} | other
    result = replace(
        result,
        measures=measure(found, grades),
        ranking=found[:MEASURED_DEPTH],
        grades=grades,
        other_grades=len(other) + sum(it.is_model for it in graded.values()),
    )
    return result if result.is_known else _without_answered(result)


def _without_answered(result: CaseResult) -> CaseResult:
    """Return the result of a case that perhaps no document answers: a refusal is no failure."""
    if result.answer is None:
        return result
    return replace(result, answer=replace(result.answer, measures=replace(result.answer.measures, answered=None)))


def _answered(
    case: Case, outcome: SearchOutcome | None, principal: Principal, model: str, usage_ids: list[int]
) -> tuple[AnswerFigures, tuple[str, ...]]:
    """Return the figures of a case's answer, and the codes of what it was written without."""
    if outcome is None:
        return unanswered(case), ()
    try:
        return answered_case(case, outcome, principal, model=model, usage_ids=usage_ids)
    except CoreCubeError as error:
        return unanswered(case), (error.code,)


def _searched(
    case: Case, asked: SearchRequest, principal: Principal, resources: Resources | None, usage_ids: list[int]
) -> tuple[CaseResult, SearchOutcome | None]:
    """Search for a case and return its result before it is measured, with the outcome; None if it timed out."""
    started = perf_counter()
    try:
        asked = replace(asked, text=case.query)
        outcome = unrecorded_search(asked, principal=principal, resources=resources, usage_ids=usage_ids)
    except SearchTimeoutError as error:
        milliseconds = (perf_counter() - started) * 1000
        result = replace(_unsearched(case), milliseconds=milliseconds, degraded=(error.code,))
        return result, None
    judged = outcome.state.answerability
    result = replace(
        _unsearched(case),
        verdict=judged.verdict if judged else None,
        confidence=judged.confidence if judged else None,
        milliseconds=(perf_counter() - started) * 1000,
        tokens=sum(passage.token_count for passage in outcome.passages),
        degraded=outcome.state.degraded,
        version=outcome.version_number,
        fingerprint=outcome.preset_version,
        values=outcome.preset.changes(outcome.configuration.config),
    )
    return result, outcome


def _unsearched(case: Case) -> CaseResult:
    return CaseResult(case.pk, case.query, case.is_answerable, None, None, has_expected=bool(case.answers))
