"""Judging hits: grades of passages, the measures of the ranking, and queries saved as cases."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.core.exceptions import BadRequest
from django.http import Http404, HttpResponse, HttpResponseRedirect, QueryDict
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme

from corecube.access import scope_for
from corecube.http import HtmxHttpRequest
from corecube.models import User
from explorer.charts.chart import ABSENT
from explorer.viewer import admin_action, errors_shown, principal_of, user_page, viewer_of, wants_fragment
from explorer.wording import WORDS
from retrieval.evaluation.case_answers import AnswerMeasures
from retrieval.evaluation.question_sets import CaseFacts, SetResult, save_case, set_named
from retrieval.models import QuestionSet, SearchRecord
from retrieval.ranking.measures import CUTOFF, RECALL_CUTOFF, Measures, measure
from retrieval.records.arrival import await_record
from retrieval.records.judgments import GRADES, Graded, PassageId, grades_of, judge, ranked_passages
from retrieval.records.stored_trace import ranking_of
from retrieval.search.outcome import SearchOutcome


@dataclass(frozen=True, slots=True)
class JudgeStrip:
    """The grades of one hit."""

    rank: int
    passage: str  #: The judged passage: the document, and the hash of the text.
    own: int | None  #: The viewer's grade; None for none.
    others: str


def _judge_panel(
    ranking: Sequence[PassageId], grades: Mapping[PassageId, Graded], *, query: str, trace_id: UUID
) -> dict[str, Any]:
    measures = measure_cells(measure(ranking, {passage: it.grade for passage, it in grades.items()}))
    return {
        "query": query,
        "trace_id": trace_id,
        "strips": {
            rank: judge_strip(rank, passage, grades.get(passage)) for rank, passage in enumerate(ranking, start=1)
        },
        "measures": measures,
        "spoken": ", ".join(f"{cell['name']} {cell['value']}" for cell in measures),
        "judged": len(grades),
        "own": sum(graded.own is not None for graded in grades.values()),
    }


def judge_strip(rank: int, passage: PassageId, graded: Graded | None) -> JudgeStrip:
    """Return the grades of one hit."""
    own, others = graded.own if graded else None, ""
    if graded and own is None:
        is_one = graded.others == 1
        others = (
            f"{graded.grade}{' by another user' if is_one else f', the lower median of {graded.others:,} other users'}"
        )
    return JudgeStrip(rank=rank, passage=f"{passage.document_id}:{passage.content_hash}", own=own, others=others)


def measure_cells(measures: Measures) -> tuple[dict[str, Any], ...]:
    """Return the measures for display, rounded."""
    depths = {"cutoff": CUTOFF, "recall": RECALL_CUTOFF}
    return tuple(
        {**_cell(measures, code), "name": name.format(**depths), "help": WORDS["formulas"][code].format(**depths)}
        for code, name in WORDS["measures"].items()
    )


def result_cells(result: SetResult) -> tuple[dict[str, Any], ...]:
    """Return the means of a set's measures for display, with those of its answers if it has any."""
    return (*measure_cells(result.means), *(answer_cells(result.answer_means) if result.answers else ()))


def answer_cells(measures: AnswerMeasures) -> tuple[dict[str, Any], ...]:
    """Return the measures of answers for display, rounded."""
    return tuple(
        {**_cell(measures, code), "name": name, "help": WORDS["answer_formulas"][code]}
        for code, name in WORDS["answer_measures"].items()
    )


def _cell(measures: Measures | AnswerMeasures, code: str) -> dict[str, Any]:
    value = getattr(measures, code)
    return {"code": code, "value": ABSENT if value is None else f"{value:.3f}"}


def judging_context(outcome: SearchOutcome, viewer: User) -> dict[str, Any]:
    """Return the judgments of a search for the Explorer, within its scope."""
    query = outcome.state.query.text
    grades = grades_of(query, viewer=viewer, scope=outcome.state.scope)
    return {
        "judging": _judge_panel(ranked_passages(outcome), grades, query=query, trace_id=outcome.id),
        **case_context(viewer, trace_id=outcome.id, query=query),
    }


def case_context(viewer: User, *, trace_id: UUID, query: str) -> dict[str, Any]:
    """Return the context of the form that saves a case, which only an admin sees."""
    sets = list(QuestionSet.objects.all()) if viewer.is_admin else []
    return {"case_trace": trace_id, "case_query": query, "question_sets": sets}


@user_page("POST")
def judge_hit(request: HtmxHttpRequest) -> HttpResponse:
    """Store the viewer's grade of one hit and show the new measures of the ranking.

    A passage outside the scope of the search's user is a 404, and so is the search of another user.
    """
    viewer = viewer_of(request)
    passage, grade = given_grade(request.POST)
    record = get_object_or_404(SearchRecord.objects.own(viewer).select_related("user"), pk=_trace(request.POST))
    # What the search's principal may see now of the connections that it read.
    scope = scope_for(principal_of(record, viewer)).only(record.connection_ids, reveal=False)
    query = record.query or request.POST.get("q", "")
    judge(query, passage, grade=grade, by=viewer, scope=scope)
    if not wants_fragment(request):
        return HttpResponseRedirect(next_page(request))
    ranking = tuple(PassageId(chunk.document_id, text) for chunk, text in ranking_of(record.trace))
    panel = _judge_panel(ranking, grades_of(query, viewer=viewer, scope=scope), query=query, trace_id=record.pk)
    rank = ranking.index(passage) + 1 if passage in ranking else 0
    result = "no longer has a grade" if grade is None else f"graded {grade}, {GRADES[grade]}"
    announcement = f"Hit {rank} {result}. {panel['spoken']}."
    context = {"judging": panel, "strip": panel["strips"].get(rank), "announcement": announcement}
    return render(request, "explorer/evaluation/_judged.html", context)


def given_grade(sent: QueryDict) -> tuple[PassageId, int | None]:
    """Return the passage and the grade of a button: "document:text=2", or "document:text=" to clear it."""
    passage, _, grade = sent.get("grade", "").partition("=")
    document, _, content_hash = passage.partition(":")
    try:
        return PassageId(UUID(document), content_hash), {"": None, **{str(it): it for it in GRADES}}[grade]
    except (ValueError, KeyError) as error:
        raise BadRequest from error


def _trace(sent: QueryDict) -> UUID:
    try:
        trace = UUID(sent.get("trace", ""))
    except ValueError as error:
        raise Http404 from error
    await_record(trace)
    return trace


def next_page(request: HtmxHttpRequest, default: str = "") -> str:
    """Return the page to show after a form: the one that it names, else the default; without one, the Explorer."""
    address = request.POST.get("next", "")
    is_own = url_has_allowed_host_and_scheme(address, {request.get_host()}, require_https=request.is_secure())
    return address if is_own else default or reverse("explorer:search")


@admin_action
def save_as_case(request: HtmxHttpRequest) -> HttpResponse:
    """Save the query of a logged search in a question set, new or existing."""
    viewer = viewer_of(request)
    record = get_object_or_404(SearchRecord, pk=_trace(request.POST))
    with errors_shown(request):
        question_set = _chosen_set(request.POST, viewer)
        is_answerable = request.POST.get("answerable", "yes") == "yes"
        query = record.query or request.POST.get("q", "")
        case, is_new = save_case(question_set, query, actor=viewer, facts=CaseFacts(is_answerable, record=record))
        messages.success(request, f"{'Saved in' if is_new else 'Already in'} {case.question_set.name}.")
    return redirect(next_page(request))


def _chosen_set(sent: QueryDict, viewer: User) -> QuestionSet:
    """Return the named set, else the chosen one; raise Http404 if it was deleted."""
    if name := sent.get("name", "").strip():
        return set_named(name, actor=viewer)
    if slug := sent.get("set", ""):
        return get_object_or_404(QuestionSet, slug=slug)
    return set_named("Saved questions", actor=viewer)
