"""The audit log, for admins."""

import csv
import io
from collections.abc import AsyncIterator, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from operator import itemgetter
from typing import Final, Self

from asgiref.sync import sync_to_async
from django.db.models import QuerySet
from django.http import HttpResponse, StreamingHttpResponse
from django.shortcuts import render

from corecube import audit as log
from corecube.access import Principal, scope_for
from corecube.http import CSV_ENCODING, HtmxHttpRequest
from corecube.models import AuditEvent, User
from explorer.viewer import admin_page, viewer_of, whole_number
from explorer.wording import WORDS, audit_label
from retrieval.models import Document
from retrieval.models.document import id_in

CSV_HEADER: Final = ("at", "actor", "action", "subject", "details")
#: Spreadsheets interpret cells that start with one of these as formulas.
_FORMULA_PREFIXES: Final = ("=", "+", "-", "@", "\t", "\r")
_MAX_FILTER_LENGTH: Final = 200
_PAGE_SIZE: Final = 50
_BATCH_SIZE: Final = 1000
_RECENT_EVENTS: Final = 2000  #: Latest events whose actions are offered, beside those with a label.
_COUNTS: Final = frozenset({"gained", "lost"})  #: Details that are shown above zero.
#: Details that repeat the subject or identify a row by its number.
_IDS: Final = frozenset({"holder", "connection_id", "case", "run", "sweep", "example", "calibration"})


@dataclass(frozen=True, slots=True)
class AuditFilter:
    """The filters in the query string."""

    action: str = ""  #: Prefix of the action: "grant." or "grant.changed".
    actor: str = ""
    subject: str = ""
    since: datetime | None = None
    before: int | None = None  #: Events before this id; None for the newest.

    @classmethod
    def read(cls, query: Mapping[str, str]) -> Self:
        """Return the filters of a query string; invalid values are ignored."""
        return cls(
            action=_plain(query.get("action", "")),
            actor=_plain(query.get("actor", "")),
            subject=_plain(query.get("subject", "")),
            since=_day(query.get("since", "")),
            before=whole_number(query.get("before", ""), None),
        )

    @property
    def day(self) -> str:
        """The first day as the value of a date input."""
        return f"{self.since:%Y-%m-%d}" if self.since else ""

    @property
    def is_empty(self) -> bool:
        """Whether it filters nothing."""
        return not any((self.action, self.actor, self.subject, self.since))


def details_of(event: AuditEvent) -> list[tuple[str, str]]:
    """Return name and value of each detail, as text: "before" first, then "after", then the rest by name."""
    order = {"before": 0, "after": 1}
    details = sorted(event.details.items(), key=lambda it: (order.get(it[0], 2), it[0]))
    return [(name.replace("_", " "), _value(value)) for name, value in details]


def shown_details(event: AuditEvent) -> list[tuple[str, str]]:
    """Return the details for the page: a change as "none → internal", and no ids, empty values or zeros."""
    rest = {name: value for name, value in event.details.items() if name not in _IDS and (name not in _COUNTS or value)}
    change = _change(rest.pop("before"), rest.pop("after")) if {"before", "after"} <= rest.keys() else ""
    rest = {name: value for name, value in rest.items() if value not in ("", None)}
    named = [
        (WORDS["audit_details"].get(name, name.replace("_", " ")), _value(it)) for name, it in sorted(rest.items())
    ]
    return [("", change), *named] if change else named


def _change(before: object, after: object) -> str:
    if isinstance(before, dict) and isinstance(after, dict):
        return ", ".join(f"{name} {_change(it, after.get(name))}" for name, it in before.items())
    return f"{_value(before)} \N{RIGHTWARDS ARROW} {_value(after)}"


def csv_lines(events: Iterable[AuditEvent]) -> str:
    """Return events as lines of a CSV file."""
    out = io.StringIO()
    for event in events:
        actor = event.actor.username if event.actor else ""
        details = "; ".join(f"{name}: {value}" for name, value in details_of(event))
        cells = (event.at.astimezone(UTC).isoformat(timespec="seconds"), actor, event.action, event.subject, details)
        csv.writer(out).writerow(f"'{it}" if it.startswith(_FORMULA_PREFIXES) else it for it in cells)
    return out.getvalue()


def _value(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {_value(part)}" for name, part in value.items())
    if isinstance(value, list):
        return ", ".join(map(_value, value)) or "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "none" if value is None else str(value)


def _plain(text: str) -> str:
    # PostgreSQL does not accept NUL.
    return text.replace("\0", "").strip()[:_MAX_FILTER_LENGTH]


def _day(text: str) -> datetime | None:
    try:
        return datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC)
    except ValueError:
        return None


@admin_page("GET")
def audit(request: HtmxHttpRequest) -> HttpResponse:
    """Show the events, newest first, a page at a time."""
    filters = AuditFilter.read(request.GET)
    found = list(_events(filters)[: _PAGE_SIZE + 1])
    titles = _titles(found, viewer_of(request))
    rows = [(event, _row(event, titles)) for event in found[:_PAGE_SIZE]]
    context = {
        "filters": filters,
        "rows": rows,
        "older": found[_PAGE_SIZE - 1].pk if len(found) > _PAGE_SIZE else None,
        "actions": _actions(filters.action),
    }
    return render(request, "explorer/access/audit.html", context)


def _row(event: AuditEvent, titles: Mapping[str, str]) -> dict[str, object]:
    return {
        "label": audit_label(event.action),
        "subject": titles.get(event.subject, event.subject),
        "document": event.subject if event.subject in titles else "",
        "details": shown_details(event),
    }


def _titles(events: Iterable[AuditEvent], viewer: User) -> dict[str, str]:
    """Return the titles of the read documents that the viewer can see, by id."""
    ids = [it for event in events if event.action == "document.read" and (it := id_in(event.subject))]
    visible = scope_for(Principal(viewer)).connection_ids
    rows = Document.objects.filter(pk__in=ids, connection_id__in=list(visible)).values_list("pk", "title")
    return {str(pk): title for pk, title in rows if title}


def _actions(selected: str) -> list[tuple[str, str]]:
    """Return the actions to filter by, with their labels in order."""
    recent = AuditEvent.objects.order_by("-pk").values_list("action", flat=True)[:_RECENT_EVENTS]
    known = {*WORDS["audit_actions"], *recent, *filter(None, [selected])}
    return sorted(((action, audit_label(action)) for action in known), key=itemgetter(1, 0))


@admin_page("GET")
def export(request: HtmxHttpRequest) -> HttpResponse:
    """Stream the filtered events as a CSV file, read in batches."""
    filters = AuditFilter.read(request.GET)
    log.record("audit.exported", actor=viewer_of(request))
    headers = {"Content-Disposition": 'attachment; filename="audit.csv"'}
    return StreamingHttpResponse(_csv(filters), content_type="text/csv; charset=utf-8", headers=headers)  # type: ignore[return-value]  # a view may stream


async def _csv(filters: AuditFilter) -> AsyncIterator[bytes]:
    yield (",".join(CSV_HEADER) + "\r\n").encode(CSV_ENCODING)
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
