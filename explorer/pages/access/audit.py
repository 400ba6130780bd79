"""The audit log, for admins: who did what, when."""

from collections.abc import AsyncIterator
from typing import Final

from asgiref.sync import sync_to_async
from django.db.models import QuerySet
from django.http import HttpResponse, StreamingHttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from corecube import audit as log
from corecube.http import HtmxHttpRequest
from corecube.models import AuditEvent
from explorer.pages.access.audit_panels import CSV_HEAD, AuditFilter, audit_row, csv_lines
from explorer.viewer import admins_only, viewer_of

_PAGE: Final = 50
#: Rows that an export reads at a time.
_BATCH: Final = 1000
#: The latest events, whose actions are suggested.
_SUGGESTED_FROM: Final = 2000


@require_GET
@admins_only
@never_cache
def audit(request: HtmxHttpRequest) -> HttpResponse:
    """Show the events, newest first, a page at a time."""
    asked = AuditFilter.read(request.GET)
    found = list(_events(asked)[: _PAGE + 1])
    rows = [audit_row(event) for event in found[:_PAGE]]
    latest = AuditEvent.objects.order_by("-pk").values_list("action", flat=True)[:_SUGGESTED_FROM]
    context = {
        "section": "audit",
        "asked": asked,
        "rows": rows,
        "older": rows[-1].id if len(found) > _PAGE else None,
        "actions": sorted(set(latest)),
    }
    return render(request, "explorer/access/audit.html", context)


@require_GET
@admins_only
@never_cache
def export(request: HtmxHttpRequest) -> HttpResponse:
    """Send the events that the filters leave as a CSV file, read in batches while it is sent."""
    asked = AuditFilter.read(request.GET)
    log.record("audit.exported", actor=viewer_of(request))
    headers = {"Content-Disposition": 'attachment; filename="audit.csv"'}
    return StreamingHttpResponse(_csv(asked), content_type="text/csv; charset=utf-8", headers=headers)  # type: ignore[return-value]  # a view may stream


async def _csv(asked: AuditFilter) -> AsyncIterator[bytes]:
    """Yield the file: its head, then a batch of events at a time, newest first."""
    yield (",".join(CSV_HEAD) + "\r\n").encode()
    before = asked.before
    while True:
        lines, before = await sync_to_async(_batch)(asked, before)
        if lines:
            yield lines.encode()
        if before is None:
            return


def _batch(asked: AuditFilter, before: int | None) -> tuple[str, int | None]:
    """Return the lines of the events before an id, and the last one's id; None when there are no more."""
    events = list(_before(_events(asked), before)[:_BATCH])
    return csv_lines(events), events[-1].pk if len(events) == _BATCH else None


def _events(asked: AuditFilter) -> QuerySet[AuditEvent]:
    """Return the events that the filters leave, newest first by id, which no two share."""
    events = AuditEvent.objects.select_related("actor").order_by("-pk")
    filters: dict[str, object] = {
        "action__startswith": asked.action,
        "actor__username": asked.actor,
        "subject__icontains": asked.subject,
        "at__gte": asked.since,
    }
    return _before(events.filter(**{name: value for name, value in filters.items() if value}), asked.before)


def _before(events: QuerySet[AuditEvent], before: int | None) -> QuerySet[AuditEvent]:
    return events if before is None else events.filter(pk__lt=before)
