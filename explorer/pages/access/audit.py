"""The audit log, for admins."""

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
from explorer.pages.access.audit_panels import CSV_HEADER, AuditFilter, audit_row, csv_lines
from explorer.viewer import admins_only, viewer_of

_PAGE_SIZE: Final = 50
#: Rows per query of an export.
_BATCH_SIZE: Final = 1000
#: Latest events from which actions are suggested.
_SUGGESTION_EVENTS: Final = 2000


@require_GET
@admins_only
@never_cache
def audit(request: HtmxHttpRequest) -> HttpResponse:
    """Show the events, newest first, a page at a time."""
    filters = AuditFilter.read(request.GET)
    found = list(_events(filters)[: _PAGE_SIZE + 1])
    rows = [audit_row(event) for event in found[:_PAGE_SIZE]]
    latest = AuditEvent.objects.order_by("-pk").values_list("action", flat=True)[:_SUGGESTION_EVENTS]
    context = {
        "section": "audit",
        "filters": filters,
        "rows": rows,
        "older": rows[-1].id if len(found) > _PAGE_SIZE else None,
        "actions": sorted(set(latest)),
    }
    return render(request, "explorer/access/audit.html", context)


@require_GET
@admins_only
@never_cache
def export(request: HtmxHttpRequest) -> HttpResponse:
    """Stream the filtered events as a CSV file, read in batches."""
    filters = AuditFilter.read(request.GET)
    log.record("audit.exported", actor=viewer_of(request))
    headers = {"Content-Disposition": 'attachment; filename="audit.csv"'}
    return StreamingHttpResponse(_csv(filters), content_type="text/csv; charset=utf-8", headers=headers)  # type: ignore[return-value]  # a view may stream


async def _csv(filters: AuditFilter) -> AsyncIterator[bytes]:
    """Yield the header, then batches of events, newest first."""
    yield (",".join(CSV_HEADER) + "\r\n").encode()
    before = filters.before
    while True:
        lines, before = await sync_to_async(_batch)(filters, before)
        if lines:
            yield lines.encode()
        if before is None:
            return


def _batch(filters: AuditFilter, before: int | None) -> tuple[str, int | None]:
    """Return the lines of the events before an id, and the id of the last one, None if there are no more."""
    events = list(_before(_events(filters), before)[:_BATCH_SIZE])
    return csv_lines(events), events[-1].pk if len(events) == _BATCH_SIZE else None


def _events(filters: AuditFilter) -> QuerySet[AuditEvent]:
    """Return the filtered events, newest first by id."""
    events = AuditEvent.objects.select_related("actor").order_by("-pk")
    conditions: dict[str, object] = {
        "action__startswith": filters.action,
        "actor__username": filters.actor,
        "subject__icontains": filters.subject,
        "at__gte": filters.since,
    }
    return _before(events.filter(**{name: value for name, value in conditions.items() if value}), filters.before)


def _before(events: QuerySet[AuditEvent], before: int | None) -> QuerySet[AuditEvent]:
    return events if before is None else events.filter(pk__lt=before)
