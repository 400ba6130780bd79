"""GET /api/v1/documents/{id}."""

import uuid

import pytest

from retrieval.ingest.sync import sync_connection
from retrieval.models import Document


def path_of(title):
    return f"/api/v1/documents/{Document.objects.get(title=title).pk}"


@pytest.fixture
def manual(world):
    """A document of several chunks in Bob's scope."""
    sections = (f"## Part {number}\n\n{'Turn the wheel. ' * 120}" for number in range(4))
    (world.root / "runbooks" / "manual.md").write_text("# Manual\n\n" + "\n\n".join(sections))
    sync_connection(world.runbooks)
    return Document.objects.get(title="Manual")


def test_it_works_for_bob(world, get):
    document = get(path_of("Rolling back"), world.key("bob")).json()
    chunk = Document.objects.get(title="Rolling back").chunks.get()
    assert document["title"] == "Rolling back"
    assert document["source"]["connection"] == "runbooks"
    assert document["chunk_count"] == 1
    assert [shown["text"] for shown in document["chunks"]] == [chunk.text]
    assert document["chunks"][0]["url"].endswith(f"/documents/{document['id']}/#chunk-0")


def test_chunks_come_in_order_and_in_runs(world, manual, get):
    whole = get(path_of("Manual"), world.key("bob")).json()
    assert [chunk["ordinal"] for chunk in whole["chunks"]] == list(range(manual.chunks.count()))
    run = get(path_of("Manual") + "?offset=1&limit=2", world.key("bob")).json()
    assert [chunk["ordinal"] for chunk in run["chunks"]] == [1, 2]
    assert run["chunk_count"] == whole["chunk_count"]


def test_a_document_out_of_scope_is_like_one_that_does_not_exist(world, get):
    hidden = get(path_of("Breach of March"), world.key("bob"))
    unknown = get(f"/api/v1/documents/{uuid.uuid4()}", world.key("bob"))
    assert hidden.status_code == unknown.status_code == 404
    assert hidden.json() == unknown.json()
    assert hidden.json()["error"]["code"] == "not_found"


def test_an_id_that_is_none_is_not_found(world, get):
    response = get("/api/v1/documents/not-an-id", world.key("bob"))
    assert (response.status_code, response.json()["error"]["code"]) == (404, "not_found")


def test_a_run_that_is_too_long_is_refused(world, get):
    response = get(path_of("Rolling back") + "?limit=1001", world.key("bob"))
    assert (response.status_code, response.json()["error"]["param"]) == (422, "limit")
