"""Queued searches of the slower tier. The result is the page of the search's record."""

from uuid import UUID

from django.http import HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST
from django_htmx.http import HttpResponseClientRedirect

from corecube.access import scope_for
from corecube.errors import CoreCubeError, NotFoundError
from corecube.http import HtmxHttpRequest
from explorer.components.search_page import excluding
from explorer.viewer import principal_for, signed_in, user_page, viewer_of, wants_fragment
from retrieval.engine.stored_filter import read_filter
from retrieval.models import QueuedSearch, SearchRecord
from retrieval.search.queued_searches import PRESET, queue_search
from retrieval.search.request import SearchRequest
from retrieval.tasks.queued_searches import wake_worker_on_commit


@require_POST
@signed_in
def ask(request: HtmxHttpRequest) -> HttpResponse:
    """Queue a search and redirect to its page; show an error if it cannot be queued."""
    try:
        principal = principal_for(viewer_of(request), request.POST.get("as", ""))
        limits = read_filter(request.POST.get("filter", ""))
        job = queue_search(
            SearchRequest(
                text=request.POST.get("q", ""),
                preset=PRESET,
                narrowing=excluding(request.POST.getlist("without"), scope_for(principal)),
                filter=limits.filter,
                conditions=limits.conditions,
                surface=SearchRecord.Surface.EXPLORER,
            ),
            principal=principal,
        )
    except NotFoundError:
        raise
    except CoreCubeError as error:
        context = {"title": "Search failed", "message": str(error)}
        return render(request, "error.html", context, status=error.status)
    wake_worker_on_commit()
    return redirect("explorer:queued_search", job.pk)


@user_page("GET")
def queued(request: HtmxHttpRequest, search_id: UUID) -> HttpResponseBase:
    """Show the state of a queued search of the viewer; the fragment redirects to the result once it is done."""
    viewer = viewer_of(request)
    asked = QueuedSearch.objects.filter(user=viewer, actor=None) | QueuedSearch.objects.filter(actor=viewer)
    job = asked.filter(pk=search_id).first()
    if job is None:
        raise NotFoundError
    address = reverse("explorer:record", args=[job.record_id]) if job.record_id else ""
    fragment = wants_fragment(request)
    if fragment and address:
        return HttpResponseClientRedirect(address)
    is_open = job.status in {QueuedSearch.Status.QUEUED, QueuedSearch.Status.RUNNING}
    context = {"job": job, "is_open": is_open, "address": address, "section": "explorer"}
    return render(request, "explorer/explorer/_queued.html" if fragment else "explorer/explorer/queued.html", context)
