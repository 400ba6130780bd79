"""Evaluation runs, for admins: start one, follow it, read its results, compare two, export."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any, Final
from uuid import UUID

from django.contrib import messages
from django.http import Http404, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse

from corecube.access import Principal
from corecube.errors import CoreCubeError
from corecube.http import HtmxHttpRequest
from explorer import wording
from explorer.charts.chart import ABSENT
from explorer.charts.reliability import reliability_chart
from explorer.charts.scatter import scatter_chart
from explorer.components.sides import Side
from explorer.pages.evaluation.judge import measure_cells
from explorer.viewer import admin_action, admin_page, render_page, viewer_of, wants_fragment, whole_number
from explorer.wording import WORDS
from retrieval.evaluation import runs as services
from retrieval.evaluation.question_sets import CaseResult, SetResult
from retrieval.models import EvaluationRun, PresetVersion, QuestionSet, Trial
from retrieval.presets.catalog import DEFAULT_PRESET, PRESETS
from retrieval.ranking.measures import CUTOFF, MEASURED_DEPTH, OBJECTIVES, RECALL_CUTOFF, Objective
from retrieval.ranking.significance import Difference
from retrieval.tasks.evaluation_runs import wake_worker_on_commit

_DRAFT: Final = " draft"  #: Behind a preset's name in the form: its draft.
_PEOPLE: Final = EvaluationRun.Counts.PEOPLE
_OTHER_GRADES: Final[Mapping[str, str]] = {
    EvaluationRun.Counts.MODEL: ", with model grades",
    EvaluationRun.Counts.USE: ", with grades from use",
}
_MAX_LISTED: Final = 50
_OTHER_CUTOFF: Final = 5  #: Of the measures at another rank, unless one is chosen.
_MOVED: Final = 0.001  #: Differences of a query from here on are listed.
_SHOWN_MEASURE: Final = "ndcg"


def configurations() -> tuple[str, ...]:
    """Return what can be measured: every preset, and each draft."""
    drafts = set(PresetVersion.objects.filter(status=PresetVersion.Status.DRAFT).values_list("preset", flat=True))
    return tuple(it for name in PRESETS for it in ((name, f"{name}{_DRAFT}") if name in drafts else (name,)))


def run_rows(question_set: QuestionSet, principal: Principal) -> list[dict[str, Any]]:
    """Return the runs of a set that a principal may read, the newest 50, with their figures."""
    runs = services.runs_for(principal).filter(question_set=question_set, trial=None).select_related("user")
    return [_row(run) for run in runs[:_MAX_LISTED]]


def _row(run: EvaluationRun) -> dict[str, Any]:
    result = services.figures_of(run)
    return {"run": run, "label": label(run), "result": result, "measures": measure_cells(result.means)}


def label(run: EvaluationRun) -> str:
    """Return what a run measured, in a few words."""
    version = f", version {run.version}" if run.version and not run.is_draft else ""
    changed = f", {len(run.overrides)} changed" if run.overrides else ""
    name = f", {run.name[0].lower()}{run.name[1:]}" if run.name and run.trigger else ""
    other = _OTHER_GRADES.get(run.counts, "")
    return f"{run.preset}{_DRAFT if run.is_draft else ''}{version}{changed}{other}{name}"


@admin_action
def start_run(request: HtmxHttpRequest, slug: str) -> HttpResponse:
    """Queue a run of a set, and show it."""
    question_set = get_object_or_404(QuestionSet, slug=slug)
    wanted = request.POST.get("configuration", DEFAULT_PRESET)
    asked = services.RunRequest(
        wanted.removesuffix(_DRAFT),
        is_draft=wanted.endswith(_DRAFT),
        name=request.POST.get("name", ""),
        counts=chosen if (chosen := request.POST.get("counts", "")) in EvaluationRun.Counts else _PEOPLE,
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
    context = {
        "section": "judgments",
        "run": run,
        "label": label(run),
        "total": max(run.question_set.cases.count(), len(result.cases)),
        "result": result,
        "measures": measure_cells(result.means),
        "refused": _share(result.refusals),
        "wrongly_refused": _share(result.wrongly_refused),
        "cases": [(it, measure_cells(it.measures) if it.measures else ()) for it in result.cases],
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


def _by_tag(run: EvaluationRun, result: SetResult) -> list[tuple[str, int, tuple[dict[str, Any], ...]]]:
    """Return the measures of the cases with each tag that the set has."""
    tags: dict[str, list[CaseResult]] = {}
    tagged = dict(run.question_set.cases.exclude(tags=[]).values_list("pk", "tags"))
    for case in result.cases:
        for tag in tagged.get(case.case, ()) if case.case else ():
            tags.setdefault(tag, []).append(case)
    return [
        (tag, len(cases), measure_cells(SetResult(run.preset, tuple(cases)).means))
        for tag, cases in sorted(tags.items())
    ]


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
        return JsonResponse(services.as_json(run, result), headers=headers)
    written = {"run": services.trec_run, "qrels": services.trec_qrels, "csv": services.csv_of}.get(kind)
    if written is None:
        raise Http404
    content_type = "text/csv" if kind == "csv" else "text/plain"
    return HttpResponse(written(result), content_type=f"{content_type}; charset=utf-8", headers=headers)


@dataclass(frozen=True, slots=True)
class _Line:
    """A measure in two runs."""

    name: str
    help: str
    first: str
    second: str
    difference: Difference | None


@admin_page("GET")
def compare_runs(request: HtmxHttpRequest) -> HttpResponse:
    """Compare two runs, `a` and `b`, on the queries of both."""
    viewer = Principal(viewer_of(request))
    first, second = (_named(request.GET.get(name, ""), viewer) for name in ("a", "b"))
    pairs = services.compared(services.result_of(first), services.result_of(second))
    found = services.differences(pairs)
    context = {
        "section": "judgments",
        "first": {"run": first, "label": label(first), "side": Side(first.preset, first.is_draft).value},
        "second": {"run": second, "label": label(second), "side": Side(second.preset, second.is_draft).value},
        "queries": len(pairs),
        "lines": _lines(pairs, found),
        "cutoff": (cutoff := _cutoff(request.GET.get("k", ""))),
        "depth": MEASURED_DEPTH,
        "lines_at": [_line_at(pairs, Objective(name, cutoff)) for name in OBJECTIVES],
        "charts": [chart] if (chart := scatter_chart(_scattered(pairs), names=("A", "B"))) else [],
        "verdict": verdict(found.get(_SHOWN_MEASURE), found.get("judged")),
        "moved": _moved(pairs),
        "swapped": f"{reverse('explorer:compare_runs')}?a={second.pk}&b={first.pk}",
    }
    return render(request, "explorer/evaluation/compare.html", context)


def _named(text: str, viewer: Principal) -> EvaluationRun:
    try:
        return services.run_for(UUID(text), viewer)
    except ValueError as error:
        raise Http404 from error


def _lines(pairs: Sequence[services.Compared], found: Mapping[str, Difference]) -> list[_Line]:
    depths = {"cutoff": CUTOFF, "recall": RECALL_CUTOFF}
    first, second = (SetResult("", tuple(getattr(it, side) for it in pairs)).means for side in ("first", "second"))
    cells = zip(measure_cells(first), measure_cells(second), strict=True)
    return [
        _Line(
            WORDS["measures"][name].format(**depths), before["help"], before["value"], after["value"], found.get(name)
        )
        for name, (before, after) in zip(WORDS["measures"], cells, strict=True)
    ]


def _cutoff(text: str) -> int:
    return min(MEASURED_DEPTH, max(1, whole_number(text, _OTHER_CUTOFF, digits=3)))


def _line_at(pairs: Sequence[services.Compared], objective: Objective) -> _Line:
    """Return an objective in two runs, over the queries that have it in both."""
    both = services.objective_values(pairs, objective)
    first, second = (f"{fmean(it[place] for it in both):.3f}" if both else ABSENT for place in (0, 1))
    return _Line(objective.label, "", first, second, services.objective_difference(pairs, objective))


def _scattered(pairs: Sequence[services.Compared]) -> list[tuple[str, float, float]]:
    return [(it.first.query, *values) for it in pairs if (values := it.values(_SHOWN_MEASURE)) is not None]


def verdict(ndcg: Difference | None, judged: Difference | None, names: tuple[str, str] = ("A", "B")) -> str:
    """Return the result in a sentence; there is no winner where chance explains it or other passages are judged."""
    if ndcg is None:
        return "No query has judgments in both runs, so nothing can be compared."
    if not (ndcg.wins or ndcg.losses):
        return f"No difference in nDCG ({wording.counted(ndcg.queries, 'judged question')})."
    if not ndcg.is_clear:
        return f"No winner: the 95 % interval of the difference in nDCG holds 0 ({ndcg.low:+.3f} to {ndcg.high:+.3f})."
    if judged is not None and judged.is_clear:
        return (
            "No winner: the runs show different shares of judged passages, and unjudged ones count as not relevant. "
            "Judge the top passages of both first."
        )
    better = names[ndcg.mean > 0]
    return (
        f"{better} is better: nDCG differs by {ndcg.mean:+.3f} (95 % interval {ndcg.low:+.3f} to {ndcg.high:+.3f}, "
        f"p = {ndcg.p_value:.3f})."
    )


def _moved(pairs: Sequence[services.Compared]) -> list[tuple[services.Compared, float, float, float]]:
    """Return the queries whose nDCG differs, the greatest losses first."""
    both = [(pair, values) for pair in pairs if (values := pair.values(_SHOWN_MEASURE)) is not None]
    moved = [(pair, before, after, after - before) for pair, (before, after) in both if abs(after - before) >= _MOVED]
    return sorted(moved, key=lambda it: it[3])
