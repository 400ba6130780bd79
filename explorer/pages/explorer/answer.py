"""The answer of the Explorer's tab, loaded after its page: writing takes longer than searching."""

from typing import Any
from uuid import UUID

from django.http import HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from corecube.errors import CoreCubeError
from corecube.http import HtmxHttpRequest
from explorer.components.search_page import failure_title
from explorer.pages.explorer.views import answered
from explorer.viewer import principal_of, signed_in, viewer_of
from retrieval.models import SearchRecord
from retrieval.records.reopening import reopened


@require_GET
@signed_in
@never_cache
def answer(request: HtmxHttpRequest, record_id: UUID) -> HttpResponse:
    """Answer a search from its passages; a 404 for the search of another user."""
    viewer = viewer_of(request)
    record = get_object_or_404(SearchRecord.objects.own(viewer).select_related("user"), pk=record_id)
    principal = principal_of(record, viewer)
    context: dict[str, Any] = {}
    status = 200
    try:
        outcome = reopened(record, principal, text=record.query or request.GET.get("q", ""))
        context["answer"] = answered(outcome, principal)
    except CoreCubeError as error:
        context["failure"] = {"title": failure_title(error), "message": str(error)}
        status = error.status
    return render(request, "explorer/explorer/_answer_fragment.html", context, status=status)
