"""Who is told what: documents out of scope, left out, or never taken in."""

import uuid

import pytest
from django.db import connection as database
from django.test.utils import CaptureQueriesContext

from corecube.access import Principal, ScopeRequest, scope_for
from corecube.models import Grant
from corecube.scope import Exclusion
from retrieval.index import active
from retrieval.ingest.sync import sync_connection
from retrieval.models import Document, Embedding, SyncItem
from retrieval.models.document import document_id
from retrieval.records.lifeline.service import Reader, follow
from retrieval.records.lifeline.types import StepState

PASSED, DROPPED, NOT_REACHED = StepState.PASSED, StepState.DROPPED, StepState.NOT_REACHED


@pytest.fixture
def read(world, find):
    """Return a function that follows a document through Bob's search, as one of the cast would be told."""

    def as_told_to(viewer, document, text="rollback", **fields):
        outcome = find(text, **fields)
        if viewer == "bob":
            scope = scope_for(world.principal("bob"))
            return follow(document, outcome, Reader(scope, frozenset(scope.connection_ids)))
        whole = scope_for(Principal(world.bob, actor=world.alice), reveal_excluded=True)
        own = scope_for(world.principal("alice"))
        return follow(document, outcome, Reader(whole, frozenset(own.connection_ids), is_admin=True))

    return as_told_to


def id_of(connection):
    return Document.objects.filter(connection=connection).order_by("title").first().pk


def test_a_document_out_of_scope_does_not_exist_and_costs_what_an_unknown_id_does(world, find):
    outcome = find("rollback")
    scope = scope_for(world.principal("bob"))
    reader = Reader(scope, frozenset(scope.connection_ids))
    queries = {}
    for name, wanted in {"hidden": id_of(world.vault), "unknown": uuid.uuid4()}.items():
        with CaptureQueriesContext(database) as captured:
            assert follow(wanted, outcome, reader) is None
        queries[name] = [query["sql"].replace(str(wanted), "").replace(wanted.hex, "") for query in captured]
    assert queries["hidden"] == queries["unknown"]
    assert len(queries["hidden"]) == 2


def test_an_admin_is_told_which_rule_keeps_a_document_from_a_person(world, read):
    line = read("alice", id_of(world.vault))
    assert [step.state for step in line.steps[:3]] == [PASSED, DROPPED, NOT_REACHED]
    assert (line.lost_at.name, line.exclusion.reason) == ("allowed", Exclusion.CLEARANCE)
    assert (line.title, line.source) == ("Breach of March", "Vault")
    assert {step.state for step in line.steps[2:]} == {NOT_REACHED}
    assert line.lost_at.remedy == "A clearance of at least restricted on Engineering gives access."
    ungranted = read("alice", id_of(world.ledger))
    assert ungranted.exclusion.reason is Exclusion.NO_GRANT
    assert ungranted.lost_at.remedy == "A clearance of at least internal on Finance gives access."


def test_an_admin_without_a_grant_is_told_the_rule_but_not_the_title(world, read):
    Grant.objects.filter(user=world.alice).delete()
    line = read("alice", id_of(world.vault))
    assert (line.title, line.source, line.lost_at.name) == ("", "Vault", "allowed")
    assert line.followed is None


def test_an_admin_is_told_that_a_connection_is_disabled(world, read):
    document = id_of(world.runbooks)
    type(world.runbooks).objects.filter(pk=world.runbooks.pk).update(enabled=False)
    line = read("alice", document)
    assert (line.exclusion.reason, line.lost_at.remedy) == (Exclusion.DISABLED, "Enable the connection to give access.")
    assert read("bob", document) is None


def test_a_grant_alone_does_not_open_a_disabled_connection(world, read):
    document = id_of(world.ledger)
    type(world.ledger).objects.filter(pk=world.ledger.pk).update(enabled=False)
    assert read("alice", document).lost_at.remedy == (
        "A clearance of at least internal on Finance gives access, once the connection is enabled."
    )


def test_what_the_request_left_out_is_lost_at_the_scope(world, read):
    line = read("bob", id_of(world.runbooks), narrowing=ScopeRequest(exclude=("runbooks",)))
    assert (line.lost_at.name, line.lost_at.fact) == ("scope", "excluded by this search's filters")
    assert line.lost_at.remedy == "Including Runbooks again brings it back."
    assert line.title


@pytest.fixture
def broken(world):
    """Put a file that cannot be read into the runbooks and the vault; return its ids there."""
    for connection in (world.runbooks, world.vault):
        (world.root / connection.slug / "plan.pdf").write_bytes(b"%PDF-1.7 no more than that")
        sync_connection(connection)
    return {slug: document_id(getattr(world, slug).pk, "plan.pdf") for slug in ("runbooks", "vault")}


def test_what_could_not_be_taken_in_says_so_to_who_may_see_its_connection(broken, read):
    line = read("bob", broken["runbooks"])
    assert (line.title, line.source, line.lost_at.name) == ("plan.pdf", "Runbooks", "indexed")
    assert line.lost_at.fact.startswith("not indexed, ")
    assert SyncItem.objects.get(document_id=broken["runbooks"]).message in line.lost_at.fact
    assert line.lost_at.remedy == "Fix this at the source; the next sync ingests it."
    assert {step.state for step in line.steps[1:]} == {NOT_REACHED}


def test_and_to_an_admin_but_to_nobody_else(broken, read):
    assert read("bob", broken["vault"]) is None
    assert read("alice", broken["vault"]).lost_at.name == "indexed"


def test_an_older_version_that_the_last_sync_could_not_replace_says_so(world, read, find):
    document = Document.objects.get(title="Rolling back")
    (world.root / "runbooks" / "rollback.md").write_text("")
    sync_connection(world.runbooks)
    step = read("bob", document.pk).steps[0]
    assert (step.state, step.fact) == (StepState.DEGRADED, "1 chunk of an earlier version; in the last sync: empty")


def test_a_document_without_a_vector_is_missed_by_the_vector_leg_with_that_reason(world, read):
    document = Document.objects.get(title="Rolling back")
    Embedding.objects.filter(document_id=document.pk).delete()
    line = read("bob", document.pk)
    (dense,) = (step for step in line.steps if step.name == "dense")
    assert (dense.state, dense.fact) == (StepState.MISSED, "it has no vector in the searched index yet")
    assert line.steps[0].fact == "1 chunk, 0 with a vector"


def test_a_search_without_a_vector_is_told_as_degraded(world, find, lifeline, monkeypatch):
    from retrieval.errors import EncoderError

    def fail(_text):
        raise EncoderError

    monkeypatch.setattr(active.encoder(), "encode_query", fail)
    line = lifeline(Document.objects.get(title="Rolling back").pk, find("rollback"))
    (dense,) = (step for step in line.steps if step.name == "dense")
    assert (dense.state, dense.fact) == (StepState.DEGRADED, "the query could not be embedded")
    assert line.citation == 1
