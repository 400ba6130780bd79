"""Experiments, for admins: start one, follow it, stop it, and see which side people prefer."""

from collections.abc import Iterator
from datetime import date, datetime, time, timedelta
from uuid import UUID

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone

from corecube.access import Principal
from corecube.errors import CoreCubeError, InvalidRequestError
from corecube.http import HtmxHttpRequest
from explorer import wording
from explorer.components.preset_numbers import version_label
from explorer.viewer import admin_action, admin_page, viewer_of, whole_number
from retrieval.evaluation import experiments as services
from retrieval.models import PresetVersion
from retrieval.presets.catalog import DEFAULT_PRESET, PRESETS
from retrieval.search.configuration import SHIPPED


@admin_page("GET", "POST")
def experiments(request: HtmxHttpRequest) -> HttpResponse:
    """Show the experiments with their reports, and the form; a POST starts one, or shows the form with the error."""
    problem = ""
    if request.method == "POST":
        try:
            services.start(_asked(request), actor=Principal(viewer_of(request)))
        except CoreCubeError as error:
            problem = str(error)
        else:
            messages.success(request, "The experiment was started. It takes effect with the next search.")
            return redirect("explorer:experiments")
    found = list(services.newest())
    context = {
        "section": "experiments",
        "reports": [services.report_of(it) for it in found],
        "is_running": any(it.is_running for it in found),
        "sides": list(_sides()),
        "default_preset": DEFAULT_PRESET,
        "max_days": services.MAX_DAYS,
        "max_questions": services.MAX_QUESTIONS,
        "problem": problem,
        "sent": request.POST,
    }
    return render(request, "explorer/evaluation/experiments.html", context, status=422 if problem else 200)


def _sides() -> Iterator[tuple[str, str]]:
    """Yield every configuration, as the form sends it, and its label; of each preset the live one first."""
    stored = list(PresetVersion.objects.values_list("preset", "number", "status"))
    for name in PRESETS:
        found = {number: status for preset, number, status in stored if preset == name}
        has_live = PresetVersion.Status.LIVE in found.values()
        found.setdefault(SHIPPED, "" if has_live else PresetVersion.Status.LIVE)
        for number, status in sorted(found.items(), key=lambda it: it[1] != PresetVersion.Status.LIVE):
            yield (
                f"{name}:{number}",
                f"{wording.preset_title(name)}, {version_label(number)}{f' ({status})' if status else ''}",
            )


def _asked(request: HtmxHttpRequest) -> services.ExperimentRequest:
    sent = request.POST
    return services.ExperimentRequest(
        name=sent.get("name", ""),
        first=_side(sent.get("a", "")),
        second=_side(sent.get("b", "")),
        share=whole_number(sent.get("share", ""), 0, digits=4),
        includes_api="includes_api" in sent,
        ends_at=_end_of(sent.get("ends_on", "")),
        max_questions=whole_number(text, 0, digits=9) if (text := sent.get("max_questions", "").strip()) else None,
    )


def _side(text: str) -> tuple[str, int | None]:
    name, _, number = text.rpartition(":")
    return name, whole_number(number, SHIPPED, digits=9)


def _end_of(text: str) -> datetime | None:
    """Return the end of a day in the installation's time zone."""
    if not text.strip():
        return None
    try:
        day = date.fromisoformat(text.strip()) + timedelta(days=1)
    except (ValueError, OverflowError) as error:
        raise InvalidRequestError("The last day must be a date, such as 2026-12-31.") from error
    return timezone.make_aware(datetime.combine(day, time()))


@admin_action
def stop_experiment(request: HtmxHttpRequest, experiment_id: UUID) -> HttpResponse:
    """End an experiment."""
    services.stop(services.experiment_named(experiment_id), actor=Principal(viewer_of(request)))
    messages.success(request, "The experiment was stopped.")
    return redirect("explorer:experiments")
