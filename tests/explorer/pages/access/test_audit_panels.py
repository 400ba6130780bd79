"""The audit log's filters, rows and CSV lines."""

import csv
import io
from datetime import UTC, datetime

import pytest

from corecube.models import AuditEvent, User
from explorer.pages.access.audit import AuditFilter, csv_lines, details_of

AT = datetime(2026, 6, 1, 12, 30, tzinfo=UTC)


def event(**changes):
    facts = {"id": 7, "at": AT, "actor": User(username="alice"), "action": "grant.changed", "subject": "group g on c"}
    return AuditEvent(**{**facts, **changes})


def test_what_an_address_cannot_mean_is_left_out():
    asked = AuditFilter.read({"action": " grant.\0 ", "since": "yesterday", "before": "x1"})
    assert asked == AuditFilter(action="grant.")
    assert AuditFilter.read({"before": "9" * 40}).before is None
    assert AuditFilter.read({}).is_empty


def test_a_day_begins_at_midnight_utc():
    asked = AuditFilter.read({"since": "2026-06-01"})
    assert asked.since == datetime(2026, 6, 1, tzinfo=UTC)
    assert asked.day == "2026-06-01"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "none"),
        (True, "yes"),
        ([], "none"),
        (["a", "b"], "a, b"),
        ({"kind": "group", "id": 3}, "kind group, id 3"),
        (4, "4"),
    ],
)
def test_details_are_read_as_text(value, text):
    assert details_of(event(details={"some_detail": value})) == [("some detail", text)]


def test_a_row_without_an_actor():
    assert next(csv.reader(io.StringIO(csv_lines([event(actor=None)]))))[1] == ""


def test_a_cell_is_never_a_formula():
    lines = csv_lines([event(subject='=HYPERLINK("http://evil")', details={"to": "a,b"})])
    assert next(csv.reader(io.StringIO(lines))) == [
        "2026-06-01T12:30:00+00:00",
        "alice",
        "grant.changed",
        '\'=HYPERLINK("http://evil")',
        "to: a,b",
    ]
