"""Judging in place: grades of passages, the measures of the ranking at hand, and questions kept as cases."""

from typing import Any
from uuid import UUID

from django.contrib import messages
from django.core.exceptions import BadRequest
from django.http import Http404, HttpResponse, HttpResponseRedirect, QueryDict
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST

from corecube.access import scope_for
from corecube.errors import CoreCubeError, NotFoundError
from corecube.http import HtmxHttpRequest
from corecube.models import User
from corecube.scope import AccessScope
from explorer.pages.evaluation.judge_panels import JudgePanel, judge_panel
from explorer.viewer import admins_only, principal_of, signed_in, viewer_of, wants_fragment
from retrieval.evaluation.question_sets import save_case, set_named
from retrieval.models import QuestionSet, SearchRecord
from retrieval.records.judgments import GRADES, PassageId, grades_of, judge, ranked_passages
from retrieval.records.stored_trace import ranking_of
from retrieval.search.outcome import SearchOutcome


def judging_context(outcome: SearchOutcome, viewer: User) -> dict[str, Any]:
    """Return what the Explorer shows of the judgments of a search, which are read within its scope only."""
    query = outcome.state.query.text
    grades = grades_of(query, viewer=viewer, scope=outcome.state.scope)
    return {
        "judging": judge_panel(ranked_passages(outcome), grades, query=query, trace_id=outcome.id),
        **case_context(viewer, trace_id=outcome.id, query=query),
    }


def case_context(viewer: User, *, trace_id: UUID, query: str) -> dict[str, Any]:
    """Return what the form that saves a case needs; only an admin is shown it."""
    sets = list(QuestionSet.objects.all()) if viewer.is_admin else []
    return {"case_trace": trace_id, "case_query": query, "question_sets": sets}


@require_POST
@signed_in
@never_cache
def judge_hit(request: HtmxHttpRequest) -> HttpResponse:
    """Keep the viewer's grade of one hit, and show the ranking's measures anew.

    A passage outside the scope of whoever the search was made as does not exist, nor does somebody else's search.
    """
    viewer = viewer_of(request)
    passage, grade = _given(request.POST)
    record = get_object_or_404(SearchRecord.objects.own(viewer).select_related("user"), pk=_uuid(request.POST, "trace"))
    query, scope = record.query or request.POST.get("q", ""), _scope(record, viewer)
    try:
        judge(query, passage, grade=grade, by=viewer, scope=scope)
    except NotFoundError as error:
        raise Http404 from error
    if not wants_fragment(request):
        return HttpResponseRedirect(_next(request))
    ranking = tuple(PassageId(chunk.document_id, text) for chunk, text in ranking_of(record.trace))
    panel = judge_panel(ranking, grades_of(query, viewer=viewer, scope=scope), query=query, trace_id=record.pk)
    rank = ranking.index(passage) + 1 if passage in ranking else 0
    return render(request, "explorer/evaluation/_judged.html", _judged(panel, rank, grade))


def _judged(panel: JudgePanel, rank: int, grade: int | None) -> dict[str, Any]:
    said = "no longer has a grade" if grade is None else f"graded {grade}, {GRADES[grade]}"
    return {"judging": panel, "strip": panel.strips.get(rank), "announcement": f"Hit {rank} {said}. {panel.spoken}."}


def _given(sent: QueryDict) -> tuple[PassageId, int | None]:
    """Return the passage and the grade of a pressed button: "document:text=2", or "document:text=" to take it back."""
    passage, _, grade = sent.get("grade", "").partition("=")
    document, _, content_hash = passage.partition(":")
    try:
        return PassageId(UUID(document), content_hash), {"": None, **{str(it): it for it in GRADES}}[grade]
    except (ValueError, KeyError) as error:
        raise BadRequest from error


def _uuid(sent: QueryDict, name: str) -> UUID:
    try:
        return UUID(sent.get(name, ""))
    except ValueError as error:
        raise Http404 from error


def _scope(record: SearchRecord, viewer: User) -> AccessScope:
    """Return what the search's principal may see now of the connections that it read; raise Http404."""
    return scope_for(principal_of(record, viewer)).only(record.connection_ids, reveal=False)


def _next(request: HtmxHttpRequest) -> str:
    """Return the page of this site that the form was sent from."""
    address = request.POST.get("next", "")
    is_own = url_has_allowed_host_and_scheme(address, {request.get_host()}, require_https=request.is_secure())
    return address if is_own else reverse("explorer:search")


@require_POST
@admins_only
def save_as_case(request: HtmxHttpRequest) -> HttpResponse:
    """Keep the question of a logged search in a question set, a new one or one that there is."""
    viewer = viewer_of(request)
    record = get_object_or_404(SearchRecord, pk=_uuid(request.POST, "trace"))
    try:
        question_set = _chosen_set(request.POST, viewer)
        is_answerable = request.POST.get("answerable", "yes") == "yes"
        query = record.query or request.POST.get("q", "")
        case, is_new = save_case(question_set, query, actor=viewer, is_answerable=is_answerable, record=record)
    except CoreCubeError as error:
        messages.error(request, str(error))
        return redirect(_next(request))
    messages.success(request, f"{'Saved in' if is_new else 'Already in'} {case.question_set.name}.")
    return redirect(_next(request))


def _chosen_set(sent: QueryDict, viewer: User) -> QuestionSet:
    """Return the set that is named, else the one that was picked; raise Http404 for one that is gone."""
    if name := sent.get("name", "").strip():
        return set_named(name, actor=viewer)
    if slug := sent.get("set", ""):
        return get_object_or_404(QuestionSet, slug=slug)
    return set_named("Saved questions", actor=viewer)
