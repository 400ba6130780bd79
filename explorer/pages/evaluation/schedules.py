"""Schedules of a question set, for admins: when the live version is measured, its trend, and the alarm."""

from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.utils import timezone

from corecube.access import Principal
from corecube.http import HtmxHttpRequest
from explorer.charts.chart import Chart
from explorer.charts.trend import trend_chart
from explorer.pages.evaluation.gates import sent_number, sent_objective
from explorer.viewer import admin_action, errors_shown, viewer_of
from explorer.wording import preset_title
from retrieval.evaluation import schedules as services
from retrieval.evaluation.schedules import Trend
from retrieval.models import QuestionSet, Schedule
from retrieval.presets.catalog import PRESETS

_WHEN = {"after_syncs": "after syncs", "nightly": "nightly", "after_upgrades": "after upgrades"}


def schedules_context(question_set: QuestionSet, principal: Principal) -> dict[str, Any]:
    """Return what the schedules' part of a set's page shows."""
    trends = services.trends(question_set, principal)
    return {
        "schedules": [(it, _when(it.schedule)) for it in trends],
        "trend_charts": [chart for it in trends if (chart := _chart(it))],
        "alarms": [alarm_words(it) for it in trends if it.alarm],
        "presets": list(PRESETS),
        "schedule_times": _WHEN.items(),
    }


def alarm_words(trend: Trend) -> str:
    """Return what is wrong, with the preset's name for people."""
    return trend.alarm_of(preset_title(trend.schedule.preset))


def _when(schedule: Schedule) -> str:
    times = (label for name, label in _WHEN.items() if getattr(schedule, name))
    return ", ".join((*times, *(("with answers",) if schedule.has_answers else ())))


def _chart(trend: Trend) -> Chart | None:
    means = [
        (timezone.localtime(it.run.created_at), it.mean, it.run.get_trigger_display().lower()) for it in trend.points
    ]
    schedule = trend.schedule
    right = [
        (timezone.localtime(it.run.created_at), it.answers.right)
        for it in trend.points
        if it.answers and it.answers.right is not None
    ]
    return trend_chart(
        schedule.pk,
        means,
        objective=trend.objective.label,
        preset=schedule.preset,
        minimum=schedule.min_mean,
        right=right,
    )


@admin_action
def change_schedule(request: HtmxHttpRequest, slug: str) -> HttpResponse:
    """Set when a preset's live version is measured on a set; never removes the schedule."""
    question_set = get_object_or_404(QuestionSet, slug=slug)
    had_one = question_set.schedules.filter(preset=request.POST.get("preset", "")).exists()
    with errors_shown(request):
        stored = services.set_schedule(
            question_set,
            preset=request.POST.get("preset", ""),
            objective=sent_objective(request),
            actor=Principal(viewer_of(request)),
            after_syncs="after_syncs" in request.POST,
            nightly="nightly" in request.POST,
            after_upgrades="after_upgrades" in request.POST,
            has_answers="answers" in request.POST,
            min_mean=sent_number(request, "min_mean"),
        )
        if stored or had_one:
            messages.success(request, "The schedule was saved." if stored else "The schedule was removed.")
        else:
            messages.info(request, "Select when to measure. Nothing was saved.")
    return redirect("explorer:question_set", slug=slug)
