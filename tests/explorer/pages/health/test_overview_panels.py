"""The overview's figures and problems."""

from datetime import UTC, datetime, timedelta

import pytest

from corecube.models import ApiKey, Connection, User
from explorer.pages.health.panels import HealthRow
from explorer.pages.health.views import problems, search_figures, store_figures
from retrieval.records.traffic import Figures

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)


def job(status, message=""):
    return {"status": status, "message": message, "since": "an hour ago"}


def connection(**changes):
    stored = {"slug": "runbooks", "name": "Runbooks", "kind": "folder", "enabled": True}
    made = Connection(**{name: changes.pop(name, value) for name, value in stored.items()})
    values = {"connection": made, "documents": 1200, "chunks": 5000, "sync": job("done"), "problems": 0}
    return {**values, **changes}


def key(days):
    return ApiKey(name="export", user=User(username="maya"), expires_at=NOW + timedelta(days=days))


def test_the_figures_lead_to_the_searches_behind_them():
    figures = {it.label: it for it in search_figures(Figures(200, 40.4, 1204.0, 10, 5, 1), "week")}
    assert [it.value for it in figures.values()] == ["200", "40 ms", "1,204 ms", "5.0 %", "2.5 %", "0.5 %"]
    assert figures["Refused"].address == "/log/?flag=refused&since=week"
    assert figures["Searches"].address == "/log/?since=week"


def test_without_searches_the_figures_are_dashes():
    assert [it.value for it in search_figures(Figures(), "day")] == ["0", *["\N{EN DASH}"] * 5]


def test_what_is_stored_is_summed_over_the_connections():
    figures = store_figures((connection(), connection(documents=34)))
    assert [it.value for it in figures] == ["2", "1,234", "10,000"]


@pytest.mark.parametrize(
    ("changes", "tone", "words"),
    [
        ({"sync": job("failed", "No such folder.")}, "bad", "The last sync of Runbooks failed"),
        ({"sync": job("stalled")}, "bad", "stalled"),
        ({"sync": job("stopped")}, "warn", "stopped"),
        ({"sync": None}, "warn", "never synced"),
        ({"problems": 3}, "warn", "3 documents of Runbooks"),
    ],
)
def test_a_connection_that_needs_somebody_is_named(changes, tone, words):
    (found,) = problems((connection(**changes),), (), (), NOW)
    assert found.tone == tone
    assert words in found.text
    assert found.address.startswith("/connections/runbooks/")


def test_what_is_fine_disabled_or_waits_to_be_pushed_is_not_named():
    fine = (connection(), connection(enabled=False, sync=None), connection(kind="push", sync=None))
    assert problems(fine, (), (), NOW) == ()


@pytest.mark.parametrize(
    ("days", "words"),
    [(5.5, "expires in 5 days"), (1.5, "expires in 1 day"), (0.2, "expires today"), (-2, "has expired")],
)
def test_a_key_that_ends_soon_is_named(days, words):
    (found,) = problems((), (key(days),), (), NOW)
    assert found.text == f"The API key export of maya {words}"


def test_what_is_broken_comes_first():
    parts = (HealthRow("queue", "Queue", "warn", "slow"), HealthRow("disk", "Disk", "good", "fine"))
    found = problems((connection(sync=job("failed")),), (key(3),), parts, NOW)
    assert [it.tone for it in found] == ["bad", "warn", "warn"]
    assert found[1].address == "/health/#part-queue"
