"""The scope panel: the rule behind every connection, whose eyes an admin looks through, and what others never learn."""

import uuid

import pytest
from django.template.loader import render_to_string

from corecube.scope import AccessScope
from explorer.components.drops import labels_of
from explorer.components.funnel import funnel
from retrieval.answers.conversations.asking import start
from retrieval.answers.conversations.files import attach
from retrieval.answers.memory.items import Item, remember
from retrieval.engine.state import Drop, DropReason, Span
from retrieval.engine.types import ChunkId

ASKED = {"q": "rollback", "tab": "scope"}


def test_an_admin_reads_the_rule_that_shut_a_connection_out(browse):
    page = browse("alice").get("/", {**ASKED, "as": "bob"}).content.decode()
    assert "allowed: compartment Engineering through group engineers; sensitivity internal ≤ clearance internal" in page
    assert "sensitivity restricted &gt; clearance internal through group engineers" in page
    assert "no clearance on compartment Finance" in page


def test_an_admin_can_look_through_everyones_eyes(browse, world):
    admin = browse("alice")
    page = admin.get("/", ASKED).content.decode()
    assert 'href="?q=rollback&amp;tab=scope&amp;as=bob"' in page
    assert "as=charlie" in page
    world.charlie.is_active = False
    world.charlie.save()
    assert "as=charlie" not in admin.get("/", ASKED).content.decode()


@pytest.mark.parametrize("headers", [{}, {"HX-Request": "true"}])
def test_others_learn_of_no_connection_beyond_their_scope_and_of_no_person(browse, headers):
    page = browse("bob").get("/", ASKED, headers=headers).content.decode()
    assert "Runbooks" in page
    for hidden in ("Vault", "Ledger", "Finance", "alice", "charlie", "Run as", "no clearance"):
        assert hidden not in page


@pytest.mark.parametrize("name", ["bob", "charlie"])
def test_nobody_else_looks_through_other_eyes(browse, name):
    answer = browse(name).get("/", {**ASKED, "as": "alice"})
    assert answer.status_code == 403
    assert "Vault" not in answer.content.decode()


def test_a_drop_for_want_of_access_is_a_count_and_nothing_more(make_outcome):
    """The chunk of the third hit belongs to a connection that went out of scope while the search ran."""
    whole = make_outcome()
    scope = AccessScope("bob", whole.state.scope.included[:1])
    hidden = ChunkId(uuid.UUID(int=3), 0)
    spans = (Span("access", 0.001, 3, 1, drops=(Drop(hidden, DropReason.ACCESS), Drop(hidden, DropReason.ACCESS))),)
    outcome = make_outcome(scope=scope, trace=spans, hits=whole.hits[:1])
    labels = labels_of(outcome.hits, scope)
    cell = funnel(outcome, labels)["cells"][0]
    page = render_to_string("explorer/components/_stage.html", {"cell": cell, "run_as": ""})
    assert "<h3>2 dropped</h3>" in page
    assert "0 of 2 listed" in page
    for told in (str(hidden.document_id), "Document 3", "Wiki", "out of scope", "href"):
        assert told not in page


def test_the_settings_of_a_stage_have_separators(make_outcome):
    cell = funnel(make_outcome(trace=(Span("assemble", 0.001, 3, 3),)), {})["cells"][0]
    page = render_to_string("explorer/components/_stage.html", {"cell": cell, "run_as": ""})
    assert '<dd>4,000 <span class="faint">tokens</span></dd>' in page


def test_hits_that_were_gone_are_a_count_whether_or_not_there_is_such_a_chunk(make_outcome):
    """A hit of somebody's own that a filter left out, one out of scope and one that is gone look the same."""
    whole = make_outcome()
    pages = set()
    for chunk_id in (whole.hits[0].chunk_id, ChunkId(uuid.UUID(int=3), 0), ChunkId(uuid.uuid4(), 0)):
        spans = (Span("complete", 0.001, 3, 2, drops=(Drop(chunk_id, DropReason.STALE, "gone from the store"),)),)
        cell = funnel(make_outcome(trace=spans), labels_of(whole.hits, whole.state.scope))["cells"][0]
        pages.add(render_to_string("explorer/components/_stage.html", {"cell": cell, "run_as": ""}))
    (page,) = pages
    assert "1 deleted or excluded; not listed" in page
    assert "href" not in page


def test_an_admin_who_searches_as_a_user_sees_nothing_that_is_private_to_them(browse, world):
    remember(Item(text="The walrus moves to Zurich in May."), principal=world.principal("bob"))
    attach(start(world.bob), "walrus.md", b"# Walrus\n\nThe walrus moves to Zurich in May.")
    own = browse("bob").get("/explorer/", {"q": "where does the walrus move?"}).content.decode()
    assert "Zurich" in own
    alice, query = browse("alice"), {"q": "where does the walrus move?", "as": "bob"}
    for address, more in (
        ("/explorer/", {}),
        ("/explorer/", {"tab": "where", "find": "walrus"}),
        ("/explorer/", {"tab": "scope"}),
        ("/compare/", {}),
        ("/side-by-side/", {}),
    ):
        shown = alice.get(address, query | more).content.decode()
        assert [word for word in ("Zurich", "walrus.md", "Memory of bob", "ttached") if word in shown] == [], address
    assert "ttached" not in alice.get("/explorer/", {"q": "walrus", "tab": "scope"}).content.decode()
    assert "ttached" not in alice.get(f"/access/users/{world.bob.pk}/").content.decode()
