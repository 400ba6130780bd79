"""Gates, for admins: set them for a question set, and see what they say of a version that is to be promoted."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any, Final

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render

from corecube.access import Principal
from corecube.errors import InvalidRequestError
from corecube.http import HtmxHttpRequest
from explorer.components.preset_numbers import version_label
from explorer.viewer import admin_action, admin_page, errors_shown, viewer_of, whole_number
from retrieval.admin import preset_versions
from retrieval.evaluation import gates as services
from retrieval.evaluation.gates import GateResult, Verdict
from retrieval.models import PresetVersion, QuestionSet
from retrieval.presets.catalog import TUNED
from retrieval.presets.preset import Preset
from retrieval.ranking.measures import OBJECTIVES, Objective
from retrieval.search.configuration import SHIPPED
from retrieval.tasks.evaluation_runs import wake_worker_on_commit

_TONES: Final = {Verdict.PASSED: "good", Verdict.BELOW: "bad", Verdict.FAILED: "bad", Verdict.UNJUDGED: "bad"}
_NEED_RUNS: Final = frozenset({Verdict.UNMEASURED, Verdict.FAILED})


@dataclass(frozen=True, slots=True)
class GateRow:
    """A gate's result, and how many of its searches are done."""

    result: GateResult
    tone: str
    done: int
    total: int


def gate_context(preset: Preset, version: PresetVersion | None, principal: Principal) -> dict[str, Any]:
    """Return what the gates' part of the promotion's page shows."""
    results = services.checked(preset, version, principal)
    return {
        "gates": [_row(it) for it in results],
        "gates_passed": services.are_passed(results),
        "gates_need_runs": any(it.verdict in _NEED_RUNS for it in results),
        "gates_measure": any(it.verdict is Verdict.MEASURING for it in results),
    }


def _row(result: GateResult) -> GateRow:
    runs = {run.pk: run for run in (result.live, result.candidate) if run is not None}
    done = sum(run.results.count() for run in runs.values())
    total = result.gate.question_set.cases.count() * len(runs)
    return GateRow(result, _TONES.get(result.verdict, ""), done, total)


@admin_page("GET")
def promotion_gates(request: HtmxHttpRequest, name: str, number: int) -> HttpResponse:
    """Return the gates' part of the promotion's page, which asks for it again while something is measured."""
    preset, version = _chosen(name, number)
    context = gate_context(preset, version, Principal(viewer_of(request)))
    response = render(request, "explorer/evaluation/_gates.html", {"preset": preset, "number": number, **context})
    if not context["gates_measure"]:
        response.headers["HX-Refresh"] = "true"  # The form of the page depends on what the gates say.
    return response


@admin_action
def measure_gates(request: HtmxHttpRequest, name: str, number: int) -> HttpResponse:
    """Queue the runs that the gates need, or all of them again."""
    preset, version = _chosen(name, number)
    with errors_shown(request):
        services.queue_missing(
            preset, version, Principal(viewer_of(request)), again=request.POST.get("action") == "again"
        )
        wake_worker_on_commit()
    return redirect("explorer:promote", name=name, number=number)


@admin_action
def roll_back(request: HtmxHttpRequest, name: str) -> HttpResponse:
    """Make the version live again that the live one has replaced."""
    if name not in TUNED:
        raise Http404
    with errors_shown(request):
        live = whole_number(request.POST.get("live", ""), -1, digits=10)
        version = preset_versions.roll_back(preset=TUNED[name], actor=viewer_of(request), live=live)
        label = version_label(version.number if version else SHIPPED)
        messages.success(request, f"Rolled back: all searches use {label} again.")
    return redirect("explorer:preset", name=name)


def _chosen(name: str, number: int) -> tuple[Preset, PresetVersion | None]:
    if name not in TUNED:
        raise Http404
    if number == SHIPPED:
        return TUNED[name], None
    return TUNED[name], get_object_or_404(PresetVersion, preset=name, number=number)


def set_gates_context(question_set: QuestionSet) -> dict[str, Any]:
    """Return what the gates' part of a set's page shows."""
    found = list(question_set.gates.all())
    return {
        "set_gates": [(it, Objective(it.measure, it.cutoff).label) for it in found],
        "tuned_presets": list(TUNED),
        "objectives": list(OBJECTIVES.items()),
    }


@admin_action
def change_gate(request: HtmxHttpRequest, slug: str) -> HttpResponse:
    """Set a gate of a question set, or remove one."""
    question_set, actor = get_object_or_404(QuestionSet, slug=slug), Principal(viewer_of(request))
    preset, is_removed = request.POST.get("preset", ""), request.POST.get("action") == "remove"
    with errors_shown(request):
        if is_removed:
            services.remove_gate(question_set, preset=preset, actor=actor)
        else:
            services.set_gate(
                question_set,
                preset=preset,
                objective=sent_objective(request),
                max_loss=sent_number(request, "max_loss") or 0.0,
                actor=actor,
            )
        messages.success(request, "The gate was removed." if is_removed else "The gate was set.")
    return redirect("explorer:question_set", slug=slug)


def sent_objective(request: HtmxHttpRequest) -> Objective:
    """Return the objective that a form names; a cutoff that is no number is out of bounds."""
    return Objective(request.POST.get("measure", ""), whole_number(request.POST.get("cutoff", ""), 0, digits=4))


def sent_number(request: HtmxHttpRequest, name: str) -> float | None:
    """Return a number of a form, None for an empty field; raise InvalidRequestError for anything else."""
    text = request.POST.get(name, "").strip()
    return numbers_in(text)[0] if text else None


def numbers_in(text: str) -> Sequence[float]:
    """Return the numbers of a text, separated by commas; raise InvalidRequestError if one is none."""
    try:
        found = [float(part) for part in text.split(",")]
    except ValueError:
        found = []
    if not found or not all(map(isfinite, found)):
        raise InvalidRequestError(f"“{text[:60]}” is not a number, or a list of numbers with commas.")
    return found
