"""The answer of the Explorer's tab, which comes after its page: to write it takes longer than to search."""

from typing import Any
from uuid import UUID

from django.http import HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from corecube.errors import CoreCubeError
from corecube.http import HtmxHttpRequest
from explorer.pages.explorer.views import answered, failure_title
from explorer.viewer import principal_of, signed_in, viewer_of
from retrieval.models import SearchRecord
from retrieval.records.reopening import reopened


@require_GET
@signed_in
@never_cache
def answer(request: HtmxHttpRequest, record_id: UUID) -> HttpResponse:
    """Answer a search from the passages that it found; somebody else's search does not exist."""
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
