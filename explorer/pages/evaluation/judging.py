"""Judging a question set: the queue of its questions, and the passages that its raters grade differently."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlencode
from uuid import UUID

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse

from corecube.access import Principal, scope_for
from corecube.http import HtmxHttpRequest
from explorer.pages.evaluation.judge import given_grade, next_page
from explorer.viewer import (
    admin_action,
    admin_page,
    includes_results,
    principal_for,
    render_page,
    viewer_of,
    wants_fragment,
    whole_number,
)
from retrieval.evaluation import judging as services
from retrieval.models import Case, QuestionSet
from retrieval.presets.catalog import PRESETS, TUNED
from retrieval.records.judgments import GRADES, judge, normalised_query

_DEPTHS: Final = (5, 10, 20, services.MAX_DEPTH)
_MAX_DISPUTED: Final = 50


@dataclass(frozen=True, slots=True)
class _Chosen:
    """What the queue pools: the addresses of its questions carry it on."""

    presets: tuple[str, ...]
    depth: int

    @classmethod
    def of(cls, request: HtmxHttpRequest) -> "_Chosen":
        presets = tuple(it for it in PRESETS if it in request.GET.getlist("preset"))
        depth = whole_number(request.GET.get("depth", ""), services.DEFAULT_DEPTH, digits=2)
        return cls(presets or tuple(TUNED), depth if depth in _DEPTHS else services.DEFAULT_DEPTH)

    def address(self, question_set: QuestionSet, case: Case | None) -> str:
        if case is None:
            return ""
        chosen = {"case": case.pk, "preset": self.presets, "depth": self.depth}
        return f"{reverse('explorer:judging_queue', args=[question_set.slug])}?{urlencode(chosen, doseq=True)}"


@admin_page("GET", varies=True)
def judging_queue(request: HtmxHttpRequest, slug: str) -> HttpResponse:
    """Show the passages of one question of a set to judge: the named one, else the first without grades by the viewer.

    The passages are those in the scopes of both the viewer and the case's user, as whom the set is measured. The page
    loads them after it, because they take several searches.
    """
    found = get_object_or_404(QuestionSet, slug=slug)
    viewer, chosen = viewer_of(request), _Chosen.of(request)
    scope = scope_for(Principal(viewer))
    cases = list(found.cases.filter(is_answerable=True).select_related("user"))
    if not cases:
        messages.error(request, "This question set has no answerable cases to judge.")
        return redirect("explorer:question_set", slug=slug)
    judged = services.judged_by(viewer, cases, scope)
    place = _place(cases, request.GET.get("case", ""), judged)
    case = cases[place]
    context = {
        "section": "judgments",
        "question_set": found,
        "case": case,
        "number": place + 1,
        "total": len(cases),
        "begun": _begun(cases, judged),
        "grades": GRADES.items(),
        "presets": [(name, name in chosen.presets) for name in PRESETS],
        "depths": [(depth, depth == chosen.depth) for depth in _DEPTHS],
        "previous": chosen.address(found, cases[place - 1] if place else None),
        "next": chosen.address(found, cases[place + 1] if place + 1 < len(cases) else None),
    }
    if includes_results(request, whole="whole" in request.GET, run_as=""):
        measured_as = case.user if case.user and case.user.is_active else viewer
        principal = principal_for(viewer, measured_as.username)
        pooled = services.pool(case.query, chosen.presets, depth=chosen.depth, principal=principal)
        context["passages"] = services.passages_to_judge(case.query, pooled, rater=viewer, scope=scope)
    else:
        context["is_loading"] = True
    return render_page(request, "explorer/evaluation/judging.html", "explorer/evaluation/_passages.html", context)


def _begun(cases: Sequence[Case], judged: Mapping[str, int]) -> int:
    return sum(bool(judged.get(normalised_query(it.query))) for it in cases)


def _place(cases: Sequence[Case], named: str, judged: Mapping[str, int]) -> int:
    places = {str(it.pk): place for place, it in enumerate(cases)}
    unjudged = (place for place, it in enumerate(cases) if not judged.get(normalised_query(it.query)))
    return places.get(named, next(unjudged, 0))


@admin_action
def grade_pooled(request: HtmxHttpRequest, case_id: UUID) -> HttpResponse:
    """Store the viewer's grade of a passage for a case's question, and show the passage again.

    A passage outside the viewer's scope is a 404.
    """
    case, viewer = get_object_or_404(Case, pk=case_id), viewer_of(request)
    passage, grade = given_grade(request.POST)
    scope = scope_for(Principal(viewer))
    explanation = request.POST.get("explanation", "")
    judge(case.query, passage, grade=grade, by=viewer, scope=scope, explanation=explanation)
    if not wants_fragment(request):
        return redirect(next_page(request))
    shown = services.passages_to_judge(case.query, [passage], rater=viewer, scope=scope)
    cases = list(case.question_set.cases.filter(is_answerable=True))
    begun = _begun(cases, services.judged_by(viewer, cases, scope))
    context = {"case": case, "row": shown[0], "grades": GRADES.items(), "begun": begun, "is_swapped": True}
    return render(request, "explorer/evaluation/_pooled.html", context)


@admin_page("GET")
def disputed(request: HtmxHttpRequest, slug: str) -> HttpResponse:
    """List the passages of a set that its raters grade differently, the undecided ones first."""
    found = get_object_or_404(QuestionSet, slug=slug)
    viewer = viewer_of(request)
    scope = scope_for(Principal(viewer))
    rated = [it for it in services.rated_passages(found, scope) if it.is_disputed]
    rated.sort(key=lambda it: it.final is not None)
    rows = []
    for it in rated[:_MAX_DISPUTED]:
        rows += [(it, text) for text in services.passages_to_judge(it.query, [it.passage], rater=viewer, scope=scope)]
    context = {
        "section": "judgments",
        "question_set": found,
        "rows": rows,
        "number": len(rated),
        "grades": GRADES.items(),
    }
    return render(request, "explorer/evaluation/disputed.html", context)


@admin_action
def decide(request: HtmxHttpRequest, slug: str) -> HttpResponse:
    """Store the final grade of a passage that raters grade differently, or withdraw it."""
    found, viewer = get_object_or_404(QuestionSet, slug=slug), viewer_of(request)
    passage, grade = given_grade(request.POST)
    query = request.POST.get("query", "")
    services.decide(found, query, passage, grade=grade, by=viewer, scope=scope_for(Principal(viewer)))
    return redirect("explorer:disputed", slug=slug)
