"""The audit log: its filters, its rows, and its lines in a CSV file."""

import csv
import io
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, Self

from corecube.models import AuditEvent

CSV_HEAD: Final = ("at", "actor", "action", "subject", "details")
#: A spreadsheet would take a cell that begins with one of these for a formula.
_FORMULA_MARKS: Final = ("=", "+", "-", "@", "\t", "\r")
#: Digits of an event's id; more cannot be one.
_MAX_DIGITS: Final = 18
_MAX_FILTER_LENGTH: Final = 200


@dataclass(frozen=True, slots=True)
class AuditFilter:
    """What the page's address asks for."""

    #: Beginning of the action: "grant." or "grant.changed".
    action: str = ""
    #: Username of who did it.
    actor: str = ""
    #: Part of the subject.
    subject: str = ""
    since: datetime | None = None
    #: Events before this id; None for the newest.
    before: int | None = None

    @classmethod
    def read(cls, query: Mapping[str, str]) -> Self:
        """Return what a query string asks for; what it cannot mean is left out."""
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
        """The day that it starts with, as a date field has it."""
        return f"{self.since:%Y-%m-%d}" if self.since else ""

    @property
    def is_open(self) -> bool:
        """Whether it leaves nothing out."""
        return not any((self.action, self.actor, self.subject, self.since))


@dataclass(frozen=True, slots=True)
class AuditRow:
    """One event."""

    id: int
    at: datetime
    actor: str
    action: str
    subject: str
    #: Name and value of each detail, as people read them.
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
            (name.replace("_", " "), _value(value)) for name, value in sorted(event.details.items(), key=_place)
        ),
    )


def csv_lines(events: Iterable[AuditEvent]) -> str:
    """Return events as lines of a CSV file."""
    out = io.StringIO()
    csv.writer(out).writerows([_cell(it) for it in _line(event)] for event in events)
    return out.getvalue()


def _place(detail: tuple[str, object]) -> tuple[int, str]:
    """Return where a detail stands: what was, then what is, then the rest by name."""
    return {"before": 0, "after": 1}.get(detail[0], 2), detail[0]


def _line(event: AuditEvent) -> Iterator[str]:
    row = audit_row(event)
    yield event.at.astimezone(UTC).isoformat(timespec="seconds")
    yield row.actor
    yield row.action
    yield row.subject
    yield "; ".join(f"{name}: {value}" for name, value in row.details)


def _cell(text: str) -> str:
    return f"'{text}" if text.startswith(_FORMULA_MARKS) else text


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
    # PostgreSQL takes no NUL.
    return text.replace("\0", "").strip()[:_MAX_FILTER_LENGTH]


def _day(text: str) -> datetime | None:
    try:
        return datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC)
    except ValueError:
        return None
