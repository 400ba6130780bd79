"""Jobs, for admins: every sync, how far it is, and what can be done about it."""

from typing import Final
from uuid import UUID

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.http import require_GET, require_POST

from corecube.errors import CoreCubeError
from corecube.http import HtmxHttpRequest
from explorer.panels.sources import sync_row
from explorer.views.viewer import admins_only, viewer_of, wants_fragment
from retrieval.ingest.jobs import job_states
from retrieval.ingest.services import cancel_sync, retry_failed
from retrieval.models import Sync

_LAST_JOBS: Final = 50


@require_GET
@admins_only
def jobs(request: HtmxHttpRequest) -> HttpResponse:
    """List the latest syncs of all connections; the page asks again while one is at work."""
    now = timezone.now()
    last = job_states(Sync.objects.select_related("connection")[:_LAST_JOBS], now)
    rows = [sync_row(job, now, known=0) for job in last]
    context = {"section": "jobs", "jobs": rows, "is_open": any(row.is_open for row in rows)}
    template = "explorer/_jobs.html" if wants_fragment(request) else "explorer/jobs.html"
    return render(request, template, context)


@require_POST
@admins_only
def cancel(request: HtmxHttpRequest, job_id: UUID) -> HttpResponse:
    """End a sync that waits or runs."""
    sync = get_object_or_404(Sync.objects.select_related("connection"), pk=job_id)
    cancel_sync(sync, actor=viewer_of(request))
    return redirect("explorer:source", slug=sync.connection.slug)


@require_POST
@admins_only
def retry(request: HtmxHttpRequest, job_id: UUID) -> HttpResponse:
    """Queue what failed in a sync, and nothing else."""
    sync = get_object_or_404(Sync.objects.select_related("connection"), pk=job_id)
    try:
        retry_failed(sync, actor=viewer_of(request))
    except CoreCubeError as error:
        messages.error(request, str(error))
    return redirect("explorer:source", slug=sync.connection.slug)
