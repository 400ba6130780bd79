"""Feedback on answers, for admins: its trend, by preset and by source, and the rated searches."""

from datetime import date, timedelta
from typing import Any, Final

from django.http import HttpResponse
from django.shortcuts import render
from django.utils import timezone

from corecube.http import HtmxHttpRequest
from corecube.models import Connection
from explorer.charts.feedback import feedback_chart
from explorer.pages.health.panels import Figure
from explorer.pages.log.panels import log_row
from explorer.viewer import admin_page
from retrieval.operations.feedback import Thumbs, by_preset, by_source, by_week, rated_between, total

_RANGES: Final = {"30": "30 days", "90": "90 days", "365": "1 year"}
_DEFAULT_RANGE: Final = "90"
_KINDS: Final = {"": "All", "-1": "Thumbs down", "1": "Thumbs up"}
_MAX_ROWS: Final = 50


@admin_page("GET")
def feedback(request: HtmxHttpRequest) -> HttpResponse:
    """Show the thumbs for answers: the trend, the sums by preset and source, and the latest rated searches."""
    requested, kind = request.GET.get("days", ""), request.GET.get("rating", "")
    days = requested if requested in _RANGES else _DEFAULT_RANGE
    kind = kind if kind in _KINDS else ""
    length = timedelta(days=int(days))
    last = timezone.now().date()
    first = last - length + timedelta(days=1)
    found = rated_between(first, last)
    rated = found.filter(feedback=int(kind)) if kind else found
    context = {
        "ranges": list(_RANGES.items()),
        "days": days,
        "kinds": list(_KINDS.items()),
        "kind": kind,
        "figures": _figures(total(found), total(rated_between(first - length, last - length))),
        "chart": feedback_chart(by_week(found), first=first, last=last),
        "presets": [(name, _line(it)) for name, it in by_preset(found).items()],
        "sources": _sources(first, last),
        "rows": [log_row(it, timezone.now()) for it in rated.select_related("user")[:_MAX_ROWS]],
        "more": max(0, rated.count() - _MAX_ROWS),
    }
    return render(request, "explorer/feedback/feedback.html", context)


def _figures(now: Thumbs, before: Thumbs) -> list[Figure]:
    change = "\N{EN DASH}"
    if now.share is not None and before.share is not None:
        change = f"{100 * (now.share - before.share):+.0f} points"
    return [
        Figure("Ratings", f"{now.total:,}"),
        Figure("Thumbs up", _line(now)["share"]),
        Figure("Thumbs down", f"{now.down:,}"),
        Figure("Change from the period before", change),
    ]


def _line(thumbs: Thumbs) -> dict[str, Any]:
    share = "\N{EN DASH}" if thumbs.share is None else f"{thumbs.share:.0%}"
    return {"up": thumbs.up, "down": thumbs.down, "total": thumbs.total, "share": share}


def _sources(first: date, last: date) -> list[dict[str, Any]]:
    """Return a row for each connection that still exists, the one with the most thumbs down first."""
    found = by_source(first, last)
    rows = [
        {"connection": it, "answers": _line(found[it.pk].answers), "passages": _line(found[it.pk].passages)}
        for it in Connection.objects.listed().filter(pk__in=found).order_by("name")
    ]
    return sorted(rows, key=lambda it: -it["answers"]["down"] - it["passages"]["down"])
