"""The audit log's filters, rows and CSV lines."""

import csv
import io
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

from corecube.models import AuditEvent, User
from explorer.pages.access.audit import AuditFilter, csv_lines, details_of, shown_details
from explorer.wording import WORDS, audit_label

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


def test_a_change_is_shown_without_ids_and_zeros():
    change = {"holder": {"kind": "group", "id": 4}, "before": "none", "after": "internal", "gained": 3, "lost": 0}
    assert shown_details(event(details=change)) == [
        ("", "none \N{RIGHTWARDS ARROW} internal"),
        ("users with more access", "3"),
    ]
    levels = {"before": {"sensitivity": "internal"}, "after": {"sensitivity": "public"}, "known_user": False}
    assert shown_details(event(details=levels)) == [
        ("", "sensitivity internal \N{RIGHTWARDS ARROW} public"),
        ("username exists", "no"),
    ]


def test_every_recorded_action_has_a_label():
    root = Path(__file__).parents[4]
    sources = [it.read_text() for top in ("corecube", "retrieval", "explorer") for it in (root / top).rglob("*.py")]
    recorded = {name for text in sources for name in re.findall(r'record(?:_hourly)?\(\s*"([a-z_]+\.[a-z_]+)"', text)}
    assert len(recorded) > 60
    assert recorded - WORDS["audit_actions"].keys() == set()
    assert audit_label("some_thing.done") == "Some thing done"


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
