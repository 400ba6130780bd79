"""The audit log: its filters, its rows, and its lines in a CSV file."""

import csv
import io
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, Self

from corecube.models import AuditEvent

CSV_HEADER: Final = ("at", "actor", "action", "subject", "details")
#: Spreadsheets interpret cells that start with one of these as formulas.
_FORMULA_PREFIXES: Final = ("=", "+", "-", "@", "\t", "\r")
_MAX_DIGITS: Final = 18
_MAX_FILTER_LENGTH: Final = 200


@dataclass(frozen=True, slots=True)
class AuditFilter:
    """The filters in the query string."""

    #: Prefix of the action: "grant." or "grant.changed".
    action: str = ""
    #: Username.
    actor: str = ""
    #: Part of the subject.
    subject: str = ""
    since: datetime | None = None
    #: Events before this id; None for the newest.
    before: int | None = None

    @classmethod
    def read(cls, query: Mapping[str, str]) -> Self:
        """Return the filters of a query string; invalid values are ignored."""
        before = query.get("before", "")
        return cls(
            action=_plain(query.get("action", "")),
            actor=_plain(query.get("actor", "")),
            subject=_plain(query.get("subject", "")),
            since=_day(query.get("since", "")),
            before=int(before) if before.isdecimal() and len(before) <= _MAX_DIGITS else None,
        )

    @property
    def day(self) -> str:
        """The first day as the value of a date input."""
        return f"{self.since:%Y-%m-%d}" if self.since else ""

    @property
    def is_empty(self) -> bool:
        """Whether it filters nothing."""
        return not any((self.action, self.actor, self.subject, self.since))


@dataclass(frozen=True, slots=True)
class AuditRow:
    """One event."""

    id: int
    at: datetime
    actor: str
    action: str
    subject: str
    #: Name and value of each detail, as text.
    details: tuple[tuple[str, str], ...]


def audit_row(event: AuditEvent) -> AuditRow:
    """Return an event's row; its actor must be read already."""
    return AuditRow(
        id=event.pk,
        at=event.at,
        actor=event.actor.username if event.actor else "",
        action=event.action,
        subject=event.subject,
        details=tuple(
            (name.replace("_", " "), _value(value)) for name, value in sorted(event.details.items(), key=_sort_key)
        ),
    )


def csv_lines(events: Iterable[AuditEvent]) -> str:
    """Return events as lines of a CSV file."""
    out = io.StringIO()
    for event in events:
        row = audit_row(event)
        details = "; ".join(f"{name}: {value}" for name, value in row.details)
        cells = (row.at.astimezone(UTC).isoformat(timespec="seconds"), row.actor, row.action, row.subject, details)
        csv.writer(out).writerow(f"'{it}" if it.startswith(_FORMULA_PREFIXES) else it for it in cells)
    return out.getvalue()


def _sort_key(detail: tuple[str, object]) -> tuple[int, str]:
    """Sort "before" first, then "after", then the rest by name."""
    return {"before": 0, "after": 1}.get(detail[0], 2), detail[0]


def _value(value: object) -> str:
    """Return a detail as text: lists with commas, objects as pairs."""
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
