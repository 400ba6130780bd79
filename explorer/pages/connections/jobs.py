"""Jobs, for admins: all syncs with their progress and actions."""

from typing import Final
from urllib.parse import urlencode
from uuid import UUID

from django.contrib import messages
from django.core.paginator import Paginator
from django.db.models import QuerySet
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.utils import timezone
from django.views.decorators.http import require_GET, require_POST
from django.views.decorators.vary import vary_on_headers

from corecube.errors import CoreCubeError
from corecube.http import HtmxHttpRequest
from corecube.models import Connection
from explorer.components.choices import with_chosen
from explorer.pages.connections.job_panels import dry_run_names, stage_rows, sync_row
from explorer.viewer import admins_only, render_page, viewer_of, wants_fragment
from retrieval.ingest.jobs import job_states
from retrieval.ingest.services import cancel_sync, retry_failed
from retrieval.models import Sync, SyncItem

_JOBS_PER_PAGE: Final = 50
_ERRORS_PER_PAGE: Final = 50
#: Filter values with their labels.
STATES: Final = (
    ("open", "Queued or running"),
    ("queued", "Queued"),
    ("running", "Running"),
    ("done", "Done"),
    ("problems", "Done with problems"),
    ("failed", "Failed"),
    ("stopped", "Stopped"),
    ("cancelling", "Cancelling"),
    ("cancelled", "Cancelled"),
)


@require_GET
@admins_only
@vary_on_headers("HX-Request")
def jobs(request: HtmxHttpRequest) -> HttpResponse:
    """List the latest syncs, filtered by state or connection; the page polls while one is open."""
    now = timezone.now()
    filters = {name: value for name in ("state", "connection") if (value := request.GET.get(name, ""))}
    page = Paginator(_filtered(filters), _JOBS_PER_PAGE).get_page(request.GET.get("page"))
    rows = [sync_row(job, now, known=0) for job in job_states(page.object_list, now)]
    context = {
        "section": "jobs",
        "jobs": rows,
        "page": page,
        "filters": filters,
        "query": urlencode(filters),
        "states": STATES,
        "connections": with_chosen(Connection.objects.values_list("slug", "name"), filters.get("connection", "")),
        "is_open": any(row.is_open for row in rows),
        "is_swapped": wants_fragment(request),
    }
    return render_page(request, "explorer/connections/jobs.html", "explorer/connections/_jobs.html", context)


@require_GET
@admins_only
@vary_on_headers("HX-Request")
def job(request: HtmxHttpRequest, job_id: UUID) -> HttpResponse:
    """Show one sync: progress, figures and a page of its errors."""
    sync = _sync(job_id)
    now = timezone.now()
    state = job_states([sync], now)[0]
    failed = sync.items.filter(state=SyncItem.State.FAILED)
    row = sync_row(state, now, known=sync.connection.documents.count())
    context = {
        "section": "jobs",
        "sync": sync,
        "row": row,
        "stages": stage_rows(state),
        "names": dry_run_names(sync),
        "errors": Paginator(failed, _ERRORS_PER_PAGE).get_page(request.GET.get("page")),
        "is_open": row.is_open,
        "is_swapped": wants_fragment(request),
    }
    return render_page(request, "explorer/connections/job.html", "explorer/connections/_job.html", context)


@require_POST
@admins_only
def cancel(request: HtmxHttpRequest, job_id: UUID) -> HttpResponse:
    """Cancel a queued or running sync; a running one ends when its workers have stopped."""
    sync = _sync(job_id)
    cancel_sync(sync, actor=viewer_of(request))
    return redirect("explorer:connection", slug=sync.connection.slug)


@require_POST
@admins_only
def retry(request: HtmxHttpRequest, job_id: UUID) -> HttpResponse:
    """Queue a retry of the failed items of a sync, or of the given ones."""
    sync = _sync(job_id)
    items = request.POST.getlist("item") or None
    try:
        retry_failed(sync, actor=viewer_of(request), external_ids=items)
    except CoreCubeError as error:
        messages.error(request, str(error))
    return redirect("explorer:connection", slug=sync.connection.slug)


def _sync(job_id: UUID) -> Sync:
    return get_object_or_404(Sync.objects.select_related("connection"), pk=job_id)


def _filtered(filters: dict[str, str]) -> QuerySet[Sync]:
    """Return the matching syncs, newest first; an unknown state is ignored."""
    syncs = Sync.objects.select_related("connection")
    state = filters.get("state", "")
    if state == "open":
        syncs = syncs.filter(status__in=Sync.OPEN)
    elif state == "problems":
        syncs = syncs.filter(status=Sync.Status.DONE, failed__gt=0)
    elif state in Sync.Status:
        syncs = syncs.filter(status=state)
    slug = filters.get("connection", "").replace("\0", "")
    return syncs.filter(connection__slug=slug) if slug else syncs
