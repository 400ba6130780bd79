"""Other views of the search that a page shows: the same search, as long as it is the same and nothing has changed."""

import re

import lxml.html
import pytest

from corecube.models import AuditEvent, Connection, Grant
from corecube.scope import Sensitivity
from retrieval.engine.caches import RecentCache
from retrieval.ingest.sync import sync_connection
from retrieval.models import Chunk, Document, SearchRecord
from retrieval.presets.catalog import PRESETS
from tests.explorer.pages.explorer.test_views import HIDDEN, page

ASKED = {"q": "how do we roll back staging?"}
VIEWS = [{"tab": "lanes"}, {"tab": "answer"}, {"tab": "where"}, {"tab": "where", "find": "rolling"}, {"hit": "2"}]


def trace_of(response):
    return str(response.context["panels"]["trace_id"])


@pytest.fixture
def opened(browse, htmx, anywhere):
    """Return a function that searches as one of the cast, and returns how they ask for another view of that search."""

    def search(name, **asked):
        client = browse(name)
        trace = trace_of(client.get("/", {**ASKED, **asked}))

        def view(*, by=client, headers=htmx, **more):
            return by.get("/", {**ASKED, **asked, **more}, headers={**headers, "CoreCube-Trace": trace})

        return trace, view

    return search


@pytest.mark.parametrize("preset", PRESETS)
def test_every_view_is_of_the_one_search(opened, preset):
    trace, view = opened("bob", preset=preset)
    assert {trace_of(view(**more)) for more in VIEWS} == {trace}
    assert trace_of(view(tab="where", pin=str(Document.objects.get(title="Rolling back").pk))) == trace
    assert SearchRecord.objects.count() == 1


def test_what_asks_for_a_view_names_the_search_and_nothing_else_does(browse, world):
    pin = Document.objects.get(title="Rolling back").pk
    Chunk.objects.filter(document_id=pin).update(quality=0.1)
    response = browse("alice").get("/", {**ASKED, "tab": "where", "find": "rolling", "stage": "quality"})
    named = f'ancestor-or-self::*[@hx-headers=\'{{"CoreCube-Trace": "{trace_of(response)}"}}\']'
    found = lxml.html.fromstring(page(response))
    views, others = (found.xpath(f"//*[@hx-get][{which}]/@class") for which in (named, f"not({named})"))
    drawn = {"ledger panel is-default", "strip-panel", "strip-panel answerability", "view"}
    assert set(views) == {"tab", "where-form", "candidate", "stage", "drop-where", *drawn}
    assert {it.split()[0] for it in others} == {"ask", "source", "find-input"}
    assert not re.search(r"[?;]trace=", page(response))


def test_an_admin_who_looks_through_other_eyes_gets_the_same_search_and_every_look_is_audited(opened):
    trace, view = opened("alice", **{"as": "bob"})
    assert trace_of(view(tab="lanes")) == trace
    assert AuditEvent.objects.filter(action="search.run_as").count() == 2


@pytest.mark.parametrize(
    "changed", [{"q": "rollback"}, {"mode": "dense"}, {"preset": "helix"}, {"without": "runbooks"}, {"as": "bob"}]
)
def test_what_asks_for_something_else_is_a_new_search(opened, changed):
    trace, view = opened("alice")
    assert trace_of(view(**changed)) != trace
    assert SearchRecord.objects.count() == 2


def test_run_and_a_page_that_is_loaded_again_search_anew(opened, browse, htmx):
    trace, view = opened("bob")
    assert trace_of(view(headers={})) != trace
    assert trace_of(browse("bob").get("/", ASKED, headers=htmx)) != trace


@pytest.mark.parametrize("name", ["alice", "charlie"])
def test_somebody_elses_trace_id_leads_to_a_search_of_their_own(opened, browse, name):
    trace, view = opened("bob")
    response = view(by=browse(name), tab="lanes")
    assert trace_of(response) != trace
    assert SearchRecord.objects.get(pk=trace_of(response)).user.username == name


def test_a_search_as_somebody_is_not_shown_to_them(opened, browse):
    trace, _ = opened("alice", **{"as": "bob"})
    response = browse("bob").get("/", ASKED, headers={"HX-Request": "true", "CoreCube-Trace": trace})
    assert trace_of(response) != trace


def test_a_grant_that_was_taken_away_hides_what_it_opened(opened):
    trace, view = opened("alice")
    Grant.objects.filter(user__username="alice").update(clearance=Sensitivity.PUBLIC)
    response = view(tab="lanes")
    assert trace_of(response) != trace
    assert [word for word in ("zanzibar", "Breach", "deployctl") if word in page(response)] == []


def test_a_connection_that_was_disabled_hides_its_documents(opened, world):
    trace, view = opened("bob")
    Connection.objects.filter(pk=world.runbooks.pk).update(enabled=False)
    response = view(tab="lanes")
    assert trace_of(response) != trace
    assert "deployctl" not in page(response)


def test_who_is_no_admin_any_more_is_not_shown_what_admins_are(opened, world):
    trace, view = opened("alice")
    world.alice.is_staff = world.alice.is_superuser = False
    world.alice.save()
    assert trace_of(view(tab="scope")) != trace


def test_a_document_that_changed_is_not_shown_from_memory(opened, world):
    trace, view = opened("bob")
    (world.root / "runbooks" / "rollback.md").write_text(
        "# Rolling back\n\nPress the red button to roll back staging.\n"
    )
    sync_connection(world.runbooks)
    response = view(tab="lanes")
    assert trace_of(response) != trace
    assert ("deployctl" in page(response), "red button" in page(response)) == (False, True)


def test_what_changed_out_of_sight_tells_nothing(opened, world):
    trace, view = opened("bob")
    (world.root / "vault" / "breach.md").write_text("# Breach of March\n\nThe passphrase to roll back was changed.\n")
    sync_connection(world.vault)
    response = view(tab="lanes")
    assert trace_of(response) == trace
    assert [word for word in HIDDEN if word in page(response)] == []


def test_a_search_that_is_not_kept_any_more_is_made_anew(opened, monkeypatch):
    from explorer.pages.explorer import recent_searches

    trace, view = opened("bob")
    monkeypatch.setattr(recent_searches, "_recent", RecentCache(1, 300, "others"))
    response = view(tab="lanes")
    assert trace_of(response) != trace
    assert response.context["panels"]["hits"]
