"""The overview, for admins: the console's home page."""

from datetime import datetime
from typing import Any, Final

from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_POST

from corecube.http import HtmxHttpRequest
from corecube.models import ApiKey, Connection, User
from explorer.charts.traffic import traffic_charts
from explorer.pages.connections.job_panels import SyncRow, sync_row
from explorer.pages.connections.panels import connection_rows
from explorer.pages.health.guide import dismiss, guide, is_dismissed
from explorer.pages.health.overview_panels import KEY_ENDS_SOON, RANGES, problems, search_figures, store_figures
from explorer.pages.health.panels import health_rows
from explorer.pages.log.panels import LogRow, log_row, with_facts
from explorer.viewer import admins_only, viewer_of
from retrieval.ingest.jobs import job_states
from retrieval.models import SearchRecord, Sync
from retrieval.operations.installation import installation
from retrieval.records.traffic import traffic

_LAST_SEARCHES: Final = 8
_MAX_JOBS: Final = 10
_MAX_KEYS: Final = 10


@require_GET
@admins_only
@never_cache
def overview(request: HtmxHttpRequest) -> HttpResponse:
    """Show what the installation did lately, what is at work, and what to look at."""
    now = timezone.now()
    asked = request.GET.get("range", "")
    chosen = asked if asked in RANGES else next(iter(RANGES))
    context = {
        "section": "overview",
        "ranges": [(name, label) for name, (label, *_) in RANGES.items()],
        "range": chosen,
        **_searches(chosen, now),
        **_store(now),
        **_jobs(now),
        "guide": _guide(viewer_of(request), is_asked="guide" in request.GET),
    }
    return render(request, "explorer/health/overview.html", context)


@require_GET
@admins_only
@never_cache
def overview_jobs(request: HtmxHttpRequest) -> HttpResponse:
    """Show the syncs at work; the page asks again while there is one."""
    return render(request, "explorer/health/_overview_jobs.html", _jobs(timezone.now()))


@require_POST
@admins_only
def dismiss_guide(request: HtmxHttpRequest) -> HttpResponse:
    """Put the first steps away for this admin."""
    dismiss(viewer_of(request))
    return redirect("explorer:overview")


def _searches(chosen: str, now: datetime) -> dict[str, Any]:
    _, span, width, since = RANGES[chosen]
    found = traffic(until=now, span=span, width=width)
    ids = list(SearchRecord.objects.order_by("-at", "-id").values_list("pk", flat=True)[:_LAST_SEARCHES])
    last = with_facts(SearchRecord.objects.filter(pk__in=ids)).defer("trace").order_by("-at", "-id")
    rows: list[LogRow] = [log_row(record, now) for record in last]
    return {"figures": search_figures(found.total, since), "charts": traffic_charts(found), "searches": rows}


def _store(now: datetime) -> dict[str, Any]:
    rows = connection_rows(list(Connection.objects.select_related("compartment")))
    ending = ApiKey.objects.filter(revoked_at__isnull=True, expires_at__lt=now + KEY_ENDS_SOON)
    recently = ending.filter(expires_at__gt=now - KEY_ENDS_SOON).select_related("user").order_by("expires_at")
    parts = health_rows(installation(), now)
    return {"store": store_figures(rows), "problems": problems(rows, recently[:_MAX_KEYS], parts, now)}


def _jobs(now: datetime) -> dict[str, Any]:
    syncs = Sync.objects.filter(status__in=Sync.OPEN).select_related("connection").order_by("queued_at")[:_MAX_JOBS]
    rows: list[SyncRow] = [sync_row(job, now, known=0) for job in job_states(syncs, now)]
    return {"jobs": rows, "is_open": bool(rows)}


def _guide(viewer: User, *, is_asked: bool) -> object:
    """Return the first steps while some are left and the admin has not put them away, or when they are asked for."""
    steps = guide(viewer)
    hidden = not is_asked and (steps.is_done or is_dismissed(viewer))
    return None if hidden else steps
