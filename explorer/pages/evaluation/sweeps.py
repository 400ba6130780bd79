"""Sweeps, for admins: start one, follow it, see what it found, and save the best configuration as a draft."""

from collections.abc import Iterator
from typing import Any, Final
from uuid import UUID

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render

from corecube.access import Principal
from corecube.errors import CoreCubeError, InvalidRequestError
from corecube.http import HtmxHttpRequest
from explorer.charts.sweep import SweepPoint, heat_map, pareto_plot
from explorer.pages.evaluation.gates import numbers_in, sent_number, sent_objective
from explorer.viewer import admin_action, admin_page, render_page, viewer_of, wants_fragment, whole_number
from retrieval.admin.preset_versions import draft_of_best
from retrieval.evaluation import sweeps as services
from retrieval.models import PresetVersion, QuestionSet, Sweep
from retrieval.presets.catalog import DEFAULT_PRESET, TUNED
from retrieval.presets.preset import PresetConfig
from retrieval.ranking.measures import OBJECTIVES, Objective
from retrieval.ranking.tuning import Range
from retrieval.search.configuration import configuration_of
from retrieval.tasks.evaluation_runs import wake_worker_on_commit

_MAX_LISTED: Final = 50
_SHOWN_ROWS: Final = services.MAX_GRID_SETTINGS
_SMALL_GAIN: Final = 0.1  #: Of nDCG@10: the least that a sweep should tell from chance.
_TO: Final = " to "  #: Between the bounds of a range.


@admin_page("GET")
def sweeps(request: HtmxHttpRequest) -> HttpResponse:
    """List the sweeps, and the question sets and presets to start one with."""
    found = services.sweeps_for(Principal(viewer_of(request)))[:_MAX_LISTED]
    context = {
        "rows": [_summary(it) for it in found],
        "question_sets": QuestionSet.objects.filter(cases__isnull=False).distinct(),
        "presets": list(TUNED),
    }
    return render(request, "explorer/evaluation/sweeps.html", context)


def _summary(sweep: Sweep) -> dict[str, Any]:
    objective, gain = Objective(sweep.measure, sweep.cutoff), services.gain_of(sweep)
    return {
        "sweep": sweep,
        "objective": objective.label,
        "settings": ", ".join(it["name"] for it in sweep.ranges),
        "gain": gain,
        "best": services.best_of(sweep),
    }


@admin_page("GET", "POST")
def new_sweep(request: HtmxHttpRequest) -> HttpResponse:
    """Show the form of a sweep of a preset on a set; a POST queues it, or shows the form again with the error."""
    sent = request.POST if request.method == "POST" else request.GET
    question_set = get_object_or_404(QuestionSet, slug=sent.get("set", ""))
    preset = sent.get("preset", DEFAULT_PRESET)
    if preset not in TUNED:
        raise Http404
    problem = ""
    if request.method == "POST":
        try:
            sweep = services.queue_sweep(question_set, _asked(request, preset), principal=Principal(viewer_of(request)))
        except CoreCubeError as error:
            problem = str(error)
        else:
            wake_worker_on_commit()
            return redirect("explorer:sweep", sweep_id=sweep.pk)
    live = configuration_of(TUNED[preset]).config
    names, texts = sent.getlist("name"), sent.getlist("tried")
    rows = [(name, text) for name, text in zip(names, texts, strict=False) if name or text]
    context = {
        "section": "sweeps",
        "question_set": question_set,
        "preset": preset,
        "problem": problem,
        "sent": sent,
        "objectives": list(OBJECTIVES.items()),
        "sections": list(_choices(live)),
        "rows": [*rows, *[("", "")] * (services.MAX_SETTINGS - len(rows))],
        "shown_rows": max(_SHOWN_ROWS, len(rows)),
        "max_trials": services.MAX_TRIALS,
        **_power(question_set),
    }
    return render(request, "explorer/evaluation/sweep_new.html", context, status=422 if problem else 200)


def _choices(live: PresetConfig) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """Yield the sections of a preset, with the name and the text of each setting; numbers as they are entered."""
    values = live.values()
    for section in live.sections():
        limits = {it.name: f"{it.low} to {it.high}, live {values[it.name]}" for it in section.tunables}
        texts = [(it.name, f"{section.label}: {it.title} ({limits[it.name]}) {it.name}") for it in section.tunables]
        yield section.label, texts


def _power(question_set: QuestionSet) -> dict[str, Any]:
    """Return the size of both halves, and what the second can tell from chance."""
    tuning, held_out = services.halves(question_set)
    gain = services.detectable_gain(held_out) if held_out else 1.0
    return {
        "tuning": tuning,
        "held_out": held_out,
        "detectable": min(gain, 1.0),
        "has_few": round(gain, 2) > _SMALL_GAIN,
    }


def _asked(request: HtmxHttpRequest, preset: str) -> services.SweepRequest:
    method = request.POST.get("method", "")
    if method not in Sweep.Method.values:
        raise InvalidRequestError("Choose a grid or a random search.")
    return services.SweepRequest(
        preset=preset,
        ranges=list(_ranges(request, is_grid=method == Sweep.Method.GRID)),
        method=Sweep.Method(method),
        trials=whole_number(request.POST.get("trials", ""), 0, digits=6),
        objective=sent_objective(request),
        max_p95_ms=sent_number(request, "max_p95_ms"),
    )


def _ranges(request: HtmxHttpRequest, *, is_grid: bool) -> Iterator[Range]:
    for name, text in zip(request.POST.getlist("name"), request.POST.getlist("tried"), strict=False):
        if not name:
            continue
        if is_grid:
            yield Range(name, tuple(numbers_in(text)))
        else:
            low, _, high = text.partition(_TO)
            yield Range(name, low=numbers_in(low)[0], high=numbers_in(high)[0])


@admin_page("GET", varies=True)
def sweep(request: HtmxHttpRequest, sweep_id: UUID) -> HttpResponse:
    """Show a sweep; as a fragment only its results, which the page asks for again while it is open."""
    found = services.sweep_for(sweep_id, Principal(viewer_of(request)))
    objective = Objective(found.measure, found.cutoff)
    trials = list(found.trials.select_related("run"))
    points = [SweepPoint(it.number, it.values, it.mean, it.p95_ms, it.is_best) for it in trials]
    last = max((it.queries for it in trials), default=0)
    whole = [it for it, trial in zip(points, trials, strict=True) if trial.queries == last]
    charts = (
        heat_map(points, objective=objective.label) if found.method == Sweep.Method.GRID else None,
        pareto_plot(whole, objective=objective.label, max_p95_ms=found.max_p95_ms),
    )
    draft = PresetVersion.objects.filter(preset=found.preset, status=PresetVersion.Status.DRAFT).first()
    context = {
        "section": "sweeps",
        **_summary(found),
        "trials_start": trials[0],
        "trials": sorted(trials, key=lambda it: (-it.queries, it.mean is None, -(it.mean or 0.0), it.number)),
        "charts": [chart for chart in charts if chart and not found.is_open],
        "draft": draft,
    }
    response = render_page(request, "explorer/evaluation/sweep.html", "explorer/evaluation/_sweep.html", context)
    if wants_fragment(request) and not found.is_open:
        response.headers["HX-Refresh"] = "true"  # The charts and the head of the page come with the end.
    return response


@admin_action
def change_sweep(request: HtmxHttpRequest, sweep_id: UUID) -> HttpResponse:
    """Cancel or delete a sweep, or save its best configuration as the preset's draft."""
    viewer = Principal(viewer_of(request))
    found, action = services.sweep_for(sweep_id, viewer), request.POST.get("action", "")
    if action == "cancel":
        services.cancel(found, actor=viewer)
    elif action == "delete":
        services.delete(found, actor=viewer)
        messages.success(request, "The sweep was deleted.")
        return redirect("explorer:sweeps")
    elif action == "draft":
        return _drafted(request, found)
    else:
        raise Http404
    return redirect("explorer:sweep", sweep_id=found.pk)


def _drafted(request: HtmxHttpRequest, found: Sweep) -> HttpResponse:
    try:
        draft_of_best(found, actor=viewer_of(request), replaces=request.POST.get("replaces", ""))
    except CoreCubeError as error:
        messages.error(request, str(error))
        return redirect("explorer:sweep", sweep_id=found.pk)
    messages.success(request, "The best configuration was saved as the draft. Searches use it after you promote it.")
    return redirect("explorer:preset", name=found.preset)
