"""Jobs, for admins: every sync, how far it is, and what can be done about it."""

from typing import Final
from urllib.parse import urlencode
from uuid import UUID

from django.contrib import messages
from django.core.paginator import Paginator
from django.db.models import QuerySet
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.http import require_GET, require_POST
from django.views.decorators.vary import vary_on_headers

from corecube.errors import CoreCubeError
from corecube.http import HtmxHttpRequest
from corecube.models import Connection
from explorer.components.choices import with_chosen
from explorer.pages.connections.job_panels import dry_run_names, stage_rows, sync_row
from explorer.viewer import admins_only, viewer_of, wants_fragment
from retrieval.ingest.jobs import job_states
from retrieval.ingest.services import cancel_sync, retry_failed
from retrieval.models import Sync, SyncItem

_JOBS_A_PAGE: Final = 50
_ERRORS_A_PAGE: Final = 50
#: What the list can be narrowed to, with its label.
STATES: Final = (
    ("open", "Waiting or running"),
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
    """List the latest syncs, of one state or connection or of all; the page asks again while one is at work."""
    now = timezone.now()
    asked = {name: value for name in ("state", "connection") if (value := request.GET.get(name, ""))}
    page = Paginator(_narrowed(asked), _JOBS_A_PAGE).get_page(request.GET.get("page"))
    rows = [sync_row(job, now, known=0) for job in job_states(page.object_list, now)]
    context = {
        "section": "jobs",
        "jobs": rows,
        "page": page,
        "asked": asked,
        "query": urlencode(asked),
        "states": STATES,
        "connections": with_chosen(Connection.objects.values_list("slug", "name"), asked.get("connection", "")),
        "is_open": any(row.is_open for row in rows),
        "is_swapped": wants_fragment(request),
    }
    template = "explorer/connections/_jobs.html" if wants_fragment(request) else "explorer/connections/jobs.html"
    return render(request, template, context)


@require_GET
@admins_only
@vary_on_headers("HX-Request")
def job(request: HtmxHttpRequest, job_id: UUID) -> HttpResponse:
    """Show one sync: what it is at, its figures, and what it could not take in, a page at a time."""
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
        "errors": Paginator(failed, _ERRORS_A_PAGE).get_page(request.GET.get("page")),
        "is_open": row.is_open,
        "is_swapped": wants_fragment(request),
    }
    template = "explorer/connections/_job.html" if wants_fragment(request) else "explorer/connections/job.html"
    return render(request, template, context)


@require_POST
@admins_only
def cancel(request: HtmxHttpRequest, job_id: UUID) -> HttpResponse:
    """End a sync that waits or runs; one that runs is being cancelled until its workers have stopped."""
    sync = _sync(job_id)
    cancel_sync(sync, actor=viewer_of(request))
    return redirect("explorer:connection", slug=sync.connection.slug)


@require_POST
@admins_only
def retry(request: HtmxHttpRequest, job_id: UUID) -> HttpResponse:
    """Queue what failed in a sync, or one item of it, and nothing else."""
    sync = _sync(job_id)
    items = request.POST.getlist("item") or None
    try:
        retry_failed(sync, actor=viewer_of(request), external_ids=items)
    except CoreCubeError as error:
        messages.error(request, str(error))
    return redirect("explorer:connection", slug=sync.connection.slug)


def _sync(job_id: UUID) -> Sync:
    return get_object_or_404(Sync.objects.select_related("connection"), pk=job_id)


def _narrowed(asked: dict[str, str]) -> QuerySet[Sync]:
    """Return the syncs that were asked for, newest first; a state that there is not leaves all."""
    syncs = Sync.objects.select_related("connection")
    state = asked.get("state", "")
    if state == "open":
        syncs = syncs.filter(status__in=Sync.OPEN)
    elif state == "problems":
        syncs = syncs.filter(status=Sync.Status.DONE, failed__gt=0)
    elif state in Sync.Status:
        syncs = syncs.filter(status=state)
    slug = asked.get("connection", "").replace("\0", "")
    return syncs.filter(connection__slug=slug) if slug else syncs
