"""Evaluation runs, for admins: start one, follow it, read its results, export."""

from collections import Counter, defaultdict
from typing import Any, Final
from uuid import UUID

from django.contrib import messages
from django.http import Http404, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404, redirect

from corecube.access import Principal
from corecube.errors import CoreCubeError
from corecube.http import CSV_ENCODING, HtmxHttpRequest
from corecube.sanitise import storable
from explorer import wording
from explorer.charts.reliability import reliability_chart
from explorer.components.run_label import DRAFT, label
from explorer.pages.evaluation.judge import answer_cells, measure_cells
from explorer.viewer import admin_action, admin_page, render_page, viewer_of, wants_fragment, whole_number
from retrieval.answers.events import Outcome
from retrieval.evaluation import components, run_files
from retrieval.evaluation import runs as services
from retrieval.evaluation.answers import QUOTES
from retrieval.evaluation.question_sets import CaseResult, SetResult
from retrieval.models import EvaluationRun, LanguageModel, PresetVersion, QuestionSet, Trial
from retrieval.presets.catalog import DEFAULT_PRESET, PRESETS
from retrieval.search import runtime
from retrieval.tasks.evaluation_runs import wake_worker_on_commit

_PEOPLE: Final = EvaluationRun.Counts.PEOPLE
_MAX_LISTED: Final = 50
_NO_RERANKER: Final = "none"


def configurations() -> tuple[tuple[str, str], ...]:
    """Return what can be measured, as the form sends it, and its label: every preset, and each draft."""
    drafts = set(PresetVersion.objects.filter(status=PresetVersion.Status.DRAFT).values_list("preset", flat=True))
    endings = {name: ("", DRAFT) if name in drafts else ("",) for name in PRESETS}
    return tuple((f"{name}{it}", f"{wording.preset_title(name)}{it}") for name in PRESETS for it in endings[name])


def run_rows(question_set: QuestionSet, principal: Principal) -> list[dict[str, Any]]:
    """Return the runs of a set that a principal may read, the newest 50, with their figures."""
    runs = services.runs_for(principal).filter(question_set=question_set, trial=None).select_related("user")
    return [_row(run) for run in runs[:_MAX_LISTED]]


def _row(run: EvaluationRun) -> dict[str, Any]:
    result = services.figures_of(run)
    right = next((it for it in answer_cells(result.answer_means)), None) if result.answers else None
    return {"run": run, "label": label(run), "result": result, "measures": measure_cells(result.means), "right": right}


def choices() -> dict[str, Any]:
    """Return what a run can search and answer with: nothing of a kind where there is no choice."""
    return {
        "other_indexes": components.other_indexes(),
        "reranker": components.reranker_name(runtime.reranker()),
        "language_models": LanguageModel.objects.filter(is_enabled=True),
        "quotes": QUOTES,
    }


@admin_action
def start_run(request: HtmxHttpRequest, slug: str) -> HttpResponse:
    """Queue a run of a set, and show it."""
    question_set = get_object_or_404(QuestionSet, slug=slug)
    wanted = request.POST.get("configuration", DEFAULT_PRESET)
    asked = services.RunRequest(
        wanted.removesuffix(DRAFT),
        is_draft=wanted.endswith(DRAFT),
        name=request.POST.get("name", ""),
        counts=chosen if (chosen := request.POST.get("counts", "")) in EvaluationRun.Counts else _PEOPLE,
        has_answers="answers" in request.POST,
        components=components.Components(
            index=whole_number(request.POST.get("index", ""), None, digits=9),
            is_reranked=request.POST.get("reranker") != _NO_RERANKER,
            language_model=storable(request.POST.get("language_model", "")),
        ),
    )
    try:
        run = services.queue_run(question_set, asked, principal=Principal(viewer_of(request)))
    except CoreCubeError as error:
        messages.error(request, str(error))
        return redirect("explorer:question_set", slug=slug)
    wake_worker_on_commit()
    return redirect("explorer:evaluation_run", run_id=run.pk)


@admin_page("GET", varies=True)
def evaluation_run(request: HtmxHttpRequest, run_id: UUID) -> HttpResponse:
    """Show a run; as a fragment only its results, which the page asks for again while it is open."""
    viewer = Principal(viewer_of(request))
    run = services.run_for(run_id, viewer)
    result = services.result_of(run)
    others = services.runs_for(viewer).filter(question_set=run.question_set, trial=None).exclude(pk=run.pk)
    users = dict(run.question_set.cases.exclude(user=None).values_list("pk", "user__username"))
    context = {
        "section": "judgments",
        "run": run,
        "label": label(run),
        "total": max(run.question_set.cases.count(), len(result.cases)),
        "result": result,
        "measures": measure_cells(result.means),
        "answers": _answers(result) if result.answers else None,
        "refused": _share(result.refusals),
        "wrongly_refused": _share(result.wrongly_refused),
        "has_only_unjudged": not result.measured and any(it.is_answerable for it in result.cases),
        "cases": [
            (it, users.get(it.case, "") if it.case else "", measure_cells(it.measures) if it.measures else ())
            for it in result.cases
        ],
        "grades": result.grades,
        "by_tag": _by_tag(run, result),
        "answerability": (known := result.answerability),
        "charts": [reliability_chart(known.bins)] if known and not run.is_open else [],
        "is_trial": Trial.objects.filter(run=run).exists(),
        "others": [(it.pk, label(it), it.created_at) for it in others],
    }
    response = render_page(request, "explorer/evaluation/run.html", "explorer/evaluation/_run.html", context)
    if wants_fragment(request) and not run.is_open:
        response.headers["HX-Refresh"] = "true"  # The head of the page tells of the ended run too.
    return response


def _answers(result: SetResult) -> dict[str, Any]:
    """Return what the page shows of the answers."""
    contradictions = [it.measures.consistent for it in result.answers if it.measures.consistent is not None]
    outcomes = Counter(it.outcome for it in result.answers)
    return {
        "cells": answer_cells(result.answer_means),
        "outcomes": [(it.value, outcomes[it]) for it in Outcome],
        "contradictions": (contradictions.count(0.0), len(contradictions)),
        "milliseconds": result.answer_milliseconds,
        "writers": sorted({"quotes" if it.provider == QUOTES else it.provider for it in result.answers if it.provider}),
    }


def _by_tag(run: EvaluationRun, result: SetResult) -> list[tuple[str, SetResult, tuple[dict[str, Any], ...]]]:
    """Return the results and the measures of the cases with each tag that the set has."""
    tags = defaultdict[str, list[CaseResult]](list)
    tagged = dict(run.question_set.cases.exclude(tags=[]).values_list("pk", "tags"))
    for case in result.cases:
        for tag in tagged.get(case.case, ()) if case.case else ():
            tags[tag].append(case)
    found = [(tag, SetResult(run.preset, tuple(cases))) for tag, cases in sorted(tags.items())]
    return [(tag, it, _cells(it, has_answers=run.has_answers)) for tag, it in found]


def _cells(result: SetResult, *, has_answers: bool) -> tuple[dict[str, Any], ...]:
    return (*measure_cells(result.means), *(answer_cells(result.answer_means) if has_answers else ()))


def _share(counts: tuple[int, int]) -> str:
    return f"{counts[0]} of {counts[1]}" if counts[1] else ""


@admin_action
def change_run(request: HtmxHttpRequest, run_id: UUID) -> HttpResponse:
    """Cancel or delete a run."""
    viewer = Principal(viewer_of(request))
    run = services.run_for(run_id, viewer)
    action = request.POST.get("action", "")
    if action == "cancel":
        services.cancel(run, actor=viewer)
        return redirect("explorer:evaluation_run", run_id=run.pk)
    if action != "delete":
        raise Http404
    services.delete(run, actor=viewer)
    messages.success(request, "The run was deleted.")
    return redirect("explorer:question_set", slug=run.question_set.slug)


@admin_page("GET")
def export_run(request: HtmxHttpRequest, run_id: UUID, kind: str) -> HttpResponse:
    """Download a run as JSON, its figures by query as CSV, or its rankings or their grades as TREC files."""
    run = services.run_for(run_id, Principal(viewer_of(request)))
    result = services.result_of(run)
    headers = {"Content-Disposition": f'attachment; filename="{run.question_set.slug}-{run.preset}.{kind}"'}
    if kind == "json":
        return JsonResponse(run_files.as_json(run, result), headers=headers)
    written = {"run": run_files.trec_run, "qrels": run_files.trec_qrels, "csv": run_files.csv_of}.get(kind)
    if written is None:
        raise Http404
    content_type, encoding = ("text/csv", CSV_ENCODING) if kind == "csv" else ("text/plain", "utf-8")
    return HttpResponse(
        written(result).encode(encoding), content_type=f"{content_type}; charset=utf-8", headers=headers
    )
