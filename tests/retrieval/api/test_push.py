"""PUT and DELETE /api/v1/documents: who may, what happens, what is refused."""

import base64
import json
from concurrent.futures import ThreadPoolExecutor

import httpx2
import pytest

from corecube.models import ApiKey, AuditEvent, Connection, PushedItem
from retrieval.ingest.sync import sync_connection
from retrieval.models import Chunk, Document, Embedding, Sync, SyncProblem, TermFrequency

TEXT = "The pump in hall seven runs at forty bar and is serviced every march."


@pytest.fixture
def inbox(world):
    return Connection.objects.create(
        slug="inbox",
        name="Inbox",
        kind="push",
        compartment=world.runbooks.compartment,
        sensitivity=world.runbooks.sensitivity,
    )


@pytest.fixture
def pushing_key(world, inbox):
    """Return a secret of Charlie, who may see nothing, whose key may push to the inbox."""
    key, secret = ApiKey.issue(user=world.charlie, name="pump log")
    key.push_connections.add(inbox)
    return secret


@pytest.fixture
def put(client):
    def send(secret, **body):
        body = {"connection": "inbox", "external_id": "pumps/7"} | body
        headers = {"Authorization": f"Bearer {secret}"} if secret else {}
        return client.put("/api/v1/documents", json.dumps(body), content_type="application/json", headers=headers)

    return send


@pytest.fixture
def delete(client):
    def send(secret, external_id="pumps/7", connection="inbox"):
        headers = {"Authorization": f"Bearer {secret}"}
        address = f"/api/v1/documents?connection={connection}&external_id={external_id}"
        return client.delete(address, headers=headers)

    return send


def found(world, query, client):
    body = {"query": query, "scope": {"include": ["inbox"]}}
    headers = {"Authorization": f"Bearer {world.key('bob')}"}
    answer = client.post("/api/v1/search", json.dumps(body), content_type="application/json", headers=headers)
    return [hit["text"] for hit in answer.json()["hits"]]


def test_a_small_document_can_be_found_when_the_request_returns(world, inbox, pushing_key, put, client):
    answer = put(
        pushing_key,
        title="Pump seven",
        text=TEXT,
        uri="https://pumps.example.org/7",
        modified_at="2026-03-04T05:06:07+01:00",
        metadata={"hall": "7"},
    )
    assert (answer.status_code, answer.json()["state"]) == (200, "indexed")
    assert found(world, "pump forty bar", client) == [TEXT]
    document = Document.objects.get(pk=answer.json()["document_id"])
    assert (document.title, document.uri, document.raw_type) == ("Pump seven", "https://pumps.example.org/7", "txt")
    assert document.metadata["hall"] == "7"
    assert document.modified_at.isoformat() == "2026-03-04T04:06:07+00:00"


def test_the_same_again_changes_nothing_and_another_text_replaces_it(world, inbox, pushing_key, put, client):
    first = put(pushing_key, text=TEXT).json()
    rows = list(Chunk.objects.values_list("document_id", "ordinal", "content_hash"))
    assert put(pushing_key, text=TEXT).json() == first | {"state": "unchanged"}
    assert list(Chunk.objects.values_list("document_id", "ordinal", "content_hash")) == rows
    again = put(pushing_key, text=TEXT.replace("forty", "fifty"))
    assert again.json() == first
    assert found(world, "pump", client) == [TEXT.replace("forty", "fifty")]
    assert PushedItem.objects.count() == 1


def test_what_the_patterns_leave_out_is_refused(inbox, pushing_key, put):
    Connection.objects.filter(pk=inbox.pk).update(config={"exclude": ["drafts/"], "max_bytes": 200})
    assert put(pushing_key, external_id="drafts/7", text=TEXT).status_code == 422
    assert put(pushing_key, external_id="pumps/8", text=TEXT * 3).status_code == 422
    assert put(pushing_key, text=TEXT).status_code == 200
    assert PushedItem.objects.count() == 1


def test_what_was_pushed_stays_when_the_connection_is_synced(world, inbox, pushing_key, put, client):
    put(pushing_key, text=TEXT)
    for _ in range(2):
        sync = sync_connection(inbox)
        assert (sync.status, sync.seen, sync.added, sync.changed, sync.deleted) == ("done", 1, 0, 0, 0)
    assert found(world, "pump", client) == [TEXT]


def test_a_sync_makes_of_it_what_the_request_made(world, inbox, pushing_key, put):
    put(pushing_key, text=f"# Pump\n\n{TEXT}", media_type="text/markdown", title="Seven", metadata={"hall": "7"})
    rows = Document.objects.values("title", "fingerprint", "version", "source_type", "metadata", "raw_type")
    chunks = Chunk.objects.values("ordinal", "text", "heading_path", "content_hash", "language", "hints")
    before = list(rows), list(chunks)
    Document.objects.filter(connection=inbox).update(fingerprint="", version="")
    sync = sync_connection(inbox)
    assert sync.added == 1
    stored = list(rows.filter(connection=inbox)), list(chunks.filter(connection_id=inbox.pk))
    assert stored == (
        [row for row in before[0] if row["title"] == "Seven"],
        [row for row in before[1] if row["text"] == TEXT or TEXT in row["text"]],
    )


def test_deleting_takes_every_trace_away(world, inbox, pushing_key, put, delete, client):
    put(pushing_key, text=TEXT)
    identity = put(pushing_key, text=TEXT).json()["document_id"]
    assert delete(pushing_key).json() == {"document_id": identity, "deleted": True}
    assert found(world, "pump", client) == []
    assert not Document.objects.filter(connection=inbox).exists()
    assert not Chunk.objects.filter(connection_id=inbox.pk).exists()
    assert not Embedding.objects.filter(connection_id=inbox.pk).exists()
    assert not PushedItem.objects.exists()
    counts = TermFrequency.objects.filter(connection_id=inbox.pk, lexeme="").values_list("chunks", flat=True)
    assert sum(counts) == 0
    assert delete(pushing_key).json()["deleted"] is False


def test_pushes_are_audited_once_an_hour_for_each_key_and_deletions_each(inbox, pushing_key, put, delete, monkeypatch):
    hours = iter((7200, 7300, 10800))
    monkeypatch.setattr("corecube.audit.time", lambda: next(hours))
    for text in ("one", "two", "two", "three"):
        put(pushing_key, text=text)
    identity = delete(pushing_key).json()["document_id"]
    assert not delete(pushing_key).json()["deleted"]
    events = AuditEvent.objects.filter(action__startswith="document").order_by("id")
    assert [(it.action, it.subject) for it in events] == [
        ("documents.pushed", "inbox"),
        ("documents.pushed", "inbox"),
        ("document.deleted", identity),
    ]
    assert all(it.details["key"] for it in events)


def test_bytes_are_read_by_their_media_type(inbox, pushing_key, put):
    content = base64.b64encode(f"<html><body><main><h1>Pump</h1><p>{TEXT}</p></main></body></html>".encode()).decode()
    answer = put(
        pushing_key, content_base64=content, media_type="text/html; charset=utf-8", external_id="https://x/7.md"
    )
    assert answer.json()["state"] == "indexed"
    document = Document.objects.get(pk=answer.json()["document_id"])
    assert (document.source_type, document.raw_type) == ("html", "text/html")


@pytest.mark.django_db(transaction=True)
def test_a_large_document_waits_for_the_sync_that_is_queued(inbox, pushing_key, put, settings):
    settings.CELERY_TASK_ALWAYS_EAGER = False
    answer = put(pushing_key, text=f"{TEXT}\n\n" * 1200)
    assert (answer.status_code, answer.json()["state"]) == (202, "queued")
    again = put(pushing_key, external_id="pumps/8", text=f"{TEXT}\n\n" * 1200)
    assert again.status_code == 202
    assert Sync.objects.filter(connection=inbox, status="queued").count() == 1
    Sync.objects.all().delete()
    assert sync_connection(inbox).added == 2
    assert Document.objects.filter(connection=inbox).count() == 2


def test_a_push_that_does_not_wait_is_left_to_the_sync(inbox, pushing_key, put):
    for number in range(3):
        assert put(pushing_key, external_id=str(number), text=f"{TEXT} {number}", wait=False).status_code == 202
    assert not Document.objects.filter(connection=inbox).exists()
    assert Sync.objects.filter(connection=inbox).count() == 1
    Sync.objects.filter(connection=inbox).delete()
    assert sync_connection(inbox).added == 3


def test_while_a_sync_runs_a_push_waits_for_the_next(inbox, pushing_key, put):
    running = Sync.objects.create(connection=inbox, status="running")
    assert put(pushing_key, text=TEXT).json()["state"] == "queued"
    assert not Document.objects.filter(connection=inbox).exists()
    running.delete()
    Sync.objects.filter(connection=inbox).delete()
    assert sync_connection(inbox).added == 1


def test_what_cannot_be_read_is_refused_and_the_earlier_version_stays(world, inbox, pushing_key, put, client):
    put(pushing_key, text=TEXT)
    refused = put(pushing_key, text="   ")
    assert refused.status_code == 422
    assert found(world, "pump", client) == [TEXT]
    assert bytes(PushedItem.objects.get().content).decode() == TEXT


def test_a_bad_document_that_waits_is_listed_and_a_good_one_settles_it(inbox, pushing_key, put):
    content = base64.b64encode(b"%PDF-1.7 nothing").decode()
    assert put(pushing_key, content_base64=content, media_type="application/pdf").status_code == 202
    Sync.objects.filter(connection=inbox).delete()
    sync_connection(inbox)
    assert [it.external_id for it in SyncProblem.objects.filter(connection=inbox)] == ["pumps/7"]
    put(pushing_key, text=TEXT)
    assert not SyncProblem.objects.filter(connection=inbox).exists()


# Who may push: an admin, or a key that names the connection; nobody else, and nobody learns what exists.


def test_an_admin_may_push_and_a_narrowed_admin_only_within(world, inbox, put):
    assert put(world.key("alice"), text=TEXT).status_code == 200
    key, secret = ApiKey.issue(user=world.alice, name="finance only")
    key.compartments.add(world.ledger.compartment)
    assert put(secret, text=TEXT).status_code == 404


@pytest.mark.parametrize("who", ["bob", "charlie"])
def test_a_key_that_names_no_connection_may_push_nowhere(world, inbox, put, delete, who):
    for slug in ("inbox", "no-such"):
        assert put(world.key(who), text=TEXT, connection=slug).status_code == 403
        assert delete(world.key(who), connection=slug).status_code == 403
    assert not PushedItem.objects.exists()


def test_a_key_that_names_one_connection_knows_of_no_other(world, inbox, pushing_key, put, delete):
    other = Connection.objects.create(slug="other", name="Other", kind="push", compartment=inbox.compartment)
    unknown = put(pushing_key, text=TEXT, connection="no-such")
    for answer in (put(pushing_key, text=TEXT, connection="other"), delete(pushing_key, connection=other.slug)):
        assert (answer.status_code, answer.json()) == (404, unknown.json())


def test_a_signed_in_person_who_is_no_admin_may_not(world, inbox, client, put):
    client.force_login(world.bob)
    assert put("", text=TEXT).status_code == 403


def test_nobody_pushes_without_a_key(inbox, put):
    assert put("", text=TEXT).status_code == 401


def test_a_revoked_key_pushes_no_more(world, inbox, pushing_key, put):
    from django.utils import timezone

    ApiKey.objects.update(revoked_at=timezone.now())
    assert put(pushing_key, text=TEXT).status_code == 401


def test_documents_of_other_kinds_of_connections_cannot_be_pushed_or_deleted(world, put, delete):
    alice = world.key("alice")
    assert put(alice, connection="runbooks", external_id="rollback.md", text=TEXT).status_code == 422
    assert delete(alice, "rollback.md", "runbooks").status_code == 422
    assert Document.objects.filter(connection=world.runbooks, external_id="rollback.md").exists()


def test_a_disabled_connection_takes_nothing(inbox, pushing_key, put):
    Connection.objects.filter(pk=inbox.pk).update(enabled=False)
    assert put(pushing_key, text=TEXT).status_code >= 400
    assert not PushedItem.objects.exists()


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"text": TEXT, "content_base64": "eA=="},
        {"content_base64": "not base64!"},
        {"text": TEXT, "uri": "javascript:alert(1)"},
        {"text": TEXT, "uri": "https://x/" + "y" * 2000},
        {"text": TEXT, "external_id": ""},
        {"text": TEXT, "external_id": "a\x00b"},
        {"text": TEXT, "external_id": "x" * 501},
        {"text": TEXT, "title": "x" * 501},
        {"text": TEXT, "metadata": {f"fact{number}": "" for number in range(51)}},
        {"text": TEXT, "metadata": {"a": "x" * 1001}},
        {"text": TEXT, "modified_at": "yesterday"},
        {"text": TEXT, "surprise": 1},
    ],
)
def test_bad_input_is_refused_and_not_repeated(inbox, pushing_key, put, body):
    answer = put(pushing_key, **body)
    assert answer.status_code == 422
    assert "javascript" not in answer.content.decode()
    assert not PushedItem.objects.exists()


def test_a_media_type_that_nothing_reads_is_refused(inbox, pushing_key, put):
    answer = put(pushing_key, text=TEXT, media_type="video/mp4")
    assert answer.status_code == 422
    assert not PushedItem.objects.exists()


def test_a_document_over_the_limit_is_refused(inbox, pushing_key, put, settings):
    settings.CORECUBE_MAX_FILE_BYTES = 100
    assert put(pushing_key, text="x " * 51).status_code == 422
    assert put(pushing_key, text=TEXT).status_code == 200


@pytest.mark.django_db(transaction=True)
def test_pushes_of_one_id_at_once_leave_the_last_kept_one_stored(inbox, pushing_key, server):
    texts = [f"Version {number} of the pump runs at {number} bar." for number in range(8)]

    def push(text):
        body = {"connection": "inbox", "external_id": "pumps/7", "text": text}
        headers = {"Authorization": f"Bearer {pushing_key}"}
        return httpx2.put(f"{server}/api/v1/documents", json=body, headers=headers, timeout=60).status_code

    with ThreadPoolExecutor(4) as threads:
        assert set(threads.map(push, texts)) <= {200, 202}
    Sync.objects.filter(connection=inbox).delete()
    sync_connection(inbox)
    kept = bytes(PushedItem.objects.get().content).decode()
    assert [chunk.text for chunk in Chunk.objects.filter(connection_id=inbox.pk)] == [kept]
