"""The use of what a search showed, which the browser reports."""

from uuid import UUID

from django.http import HttpResponse
from django.shortcuts import get_object_or_404

from corecube.http import HtmxHttpRequest
from explorer.viewer import user_page, viewer_of, whole_number
from retrieval.models import SearchRecord
from retrieval.records.arrival import await_record
from retrieval.records.use import note_copied, note_opened


@user_page("POST")
def note_use(request: HtmxHttpRequest, record_id: UUID) -> HttpResponse:
    """Note that the viewer opened the passage `number` of their own search, or copied its answer (`copied`)."""
    await_record(record_id)
    own = SearchRecord.objects.filter(user=viewer_of(request), for_another=False).select_related("user")
    record = get_object_or_404(own, pk=record_id)
    if "copied" in request.POST:
        note_copied(record)
    else:
        note_opened(record, whole_number(request.POST.get("number", ""), 0, digits=4))
    return HttpResponse(status=204)
