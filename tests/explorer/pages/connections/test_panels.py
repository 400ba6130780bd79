"""What is said of connections."""

from datetime import UTC, datetime, timedelta

from corecube.connectors.types import Capability
from corecube.models import Connection
from corecube.reach import ConnectionAccess
from explorer.pages.connections.views import _next_sync as next_sync
from explorer.pages.connections.views import access_summary, check_rows, config_rows

NOW = datetime(2026, 6, 1, tzinfo=UTC)


def test_what_comes_after_a_failure_was_not_tried():
    rows = check_rows([Capability.passed("reach", "There."), Capability.failed("authenticate", "Refused.")])
    assert [(label, state) for label, state, _ in rows] == [
        ("Reach the source", "passed"),
        ("Sign in", "failed"),
        ("List contents", "not tested"),
        ("Read a document", "not tested"),
    ]
    assert check_rows([]) == []


def test_a_config_is_read_by_people():
    config = {"url": "https://x.example/r.git", "history": True, "include": ["*.md", "*.txt"], "max_bytes": 3 * 2**20}
    assert config_rows(Connection(kind="git", config=config)) == [
        ("URL", "https://x.example/r.git"),
        ("Use commit dates", "yes"),
        ("Include", "*.md, *.txt"),
        ("Maximum file size (MB)", "3"),
    ]


def test_long_lists_of_people_are_cut():
    words = access_summary(ConnectionAccess(("staff",), tuple(f"u{number}" for number in range(8))))
    assert tuple(words.values()) == ("group staff", "8 users", "u0, u1, u2, u3, u4, u5 and 2 more")
    assert access_summary(ConnectionAccess((), ()))["groups"] == ""


def test_the_next_sync_is_told_only_where_one_comes():
    due = {"sync_every_minutes": 60, "next_sync_at": NOW + timedelta(minutes=5)}
    assert next_sync(Connection(**due), NOW) == "in about 5 min"
    assert next_sync(Connection(**{**due, "next_sync_at": None}), NOW) == "due now"
    assert next_sync(Connection(**due, enabled=False), NOW) == ""
    assert next_sync(Connection(), NOW) == ""
