"""/api/v1/indexes."""

import json

import pytest

from corecube.models import ApiKey, AuditEvent
from retrieval.index import active, embedding_index
from retrieval.ingest import index_tasks, indexes, reindex, tasks
from retrieval.models import Chunk, EmbeddingIndex
from tests.fakes import HashEncoder
from tests.indexes import Other


def test_an_admin_sees_every_index_and_how_far_it_is(world, get):
    embedding_index.start_index(Other(dim=32), source="local:other", mode="chunk_first")
    active, building = get("/api/v1/indexes", world.key("alice")).json()
    chunks = Chunk.objects.count()
    assert (active["status"], active["model"], active["done"], active["seconds_left"]) == (
        "active",
        "hash",
        chunks,
        0.0,
    )
    assert (building["status"], building["dimensions"], building["source"]) == ("building", 32, "local:other")
    assert (building["done"], building["chunks"], building["seconds_left"]) == (0, chunks, None)


@pytest.mark.parametrize("name", ["bob", "charlie"])
def test_others_see_nothing(world, get, name):
    answer = get("/api/v1/indexes", world.key(name))
    assert answer.status_code == 403
    assert "hash" not in answer.content.decode()


def test_a_narrowed_key_of_an_admin_sees_nothing(world, get):
    key, secret = ApiKey.issue(user=world.alice, name="narrow")
    key.compartments.add(world.runbooks.compartment)
    assert get("/api/v1/indexes", secret).status_code == 403


def test_nobody_sees_nothing(world, get):
    assert get("/api/v1/indexes").status_code == 401


class Choice:
    source = "local:other"

    def load(self):
        return Other(dim=32)


def test_an_index_begins_with_a_scan_and_says_so(world, post, get, monkeypatch, queued):
    monkeypatch.setattr(indexes, "chosen", lambda **_: Choice())
    secret = world.key("alice")
    refused = post("/api/v1/indexes", {"scan": "prefix", "scan_dimensions": 16, "mode": "chunk_first"}, secret)
    assert refused.status_code == 422
    assert "was not trained so" in refused.content.decode()
    begun = post("/api/v1/indexes", {"scan": "int8", "oversample": 3, "mode": "chunk_first"}, secret).json()
    assert (begun["scan"], begun["scan_dimensions"], begun["oversample"]) == ("int8", 0, 3)
    assert [it["scan"] for it in get("/api/v1/indexes", secret).json()] == ["halfvec", "int8"]
    assert post("/api/v1/indexes", {"scan": "binary", "oversample": 100}, secret).status_code == 422


@pytest.fixture
def models(world, monkeypatch):
    found = {"hash": HashEncoder(), "other": Other(dim=32)}
    monkeypatch.setattr(active, "encoder_of", lambda row: found[row.model])


@pytest.fixture
def queued(monkeypatch):
    found = []
    for name in ("build", "clear"):
        task = getattr(index_tasks, name)
        monkeypatch.setattr(task, "delay", lambda *args, name=name: found.append((name, *args)))
    monkeypatch.setattr(tasks.work, "apply_async", lambda **_: found.append(("work",)))
    return found


def test_an_admin_changes_the_model_and_goes_back(
    world, post, models, monkeypatch, queued, django_capture_on_commit_callbacks
):
    secret, old = world.key("alice"), embedding_index.active_row()
    monkeypatch.setattr(indexes, "chosen", lambda **_: Choice())
    with django_capture_on_commit_callbacks(execute=True):
        begun = post("/api/v1/indexes", {"model": "other", "mode": "chunk_first"}, secret)
    number = begun.json()["id"]
    assert (begun.status_code, begun.json()["status"], queued) == (202, "building", [("build", number)])
    assert post(f"/api/v1/indexes/{number}/switch", {}, secret).status_code == 409
    reindex.build_index(EmbeddingIndex.objects.get(pk=number))
    assert post(f"/api/v1/indexes/{number}/switch", {}, secret).json()["status"] == "active"
    with django_capture_on_commit_callbacks(execute=True):
        assert post("/api/v1/indexes/rollback", {}, secret).json()["id"] == old.pk
    assert queued[-1] == ("work",)
    with django_capture_on_commit_callbacks(execute=True):
        assert post(f"/api/v1/indexes/{number}/drop", {}, secret).status_code == 204
    assert queued[-1] == ("clear",)
    assert embedding_index.all_indexes() == [old]
    actions = AuditEvent.objects.filter(action__startswith="index.").order_by("pk").values_list("action", flat=True)
    assert list(actions) == ["index.started", "index.switched", "index.switched", "index.dropped"]


def test_a_building_that_stopped_is_queued_again(world, post, queued, django_capture_on_commit_callbacks):
    row = embedding_index.start_index(Other(dim=32), source="local:other", mode="chunk_first")
    with django_capture_on_commit_callbacks(execute=True):
        assert post(f"/api/v1/indexes/{row.pk}/build", {}, world.key("alice")).status_code == 202
    assert queued == [("build", row.pk)]
    EmbeddingIndex.objects.filter(pk=row.pk).update(ready_at="2026-01-01T00:00Z")
    assert post(f"/api/v1/indexes/{row.pk}/build", {}, world.key("alice")).status_code == 409


def test_the_active_index_cannot_be_dropped(world, post):
    row = embedding_index.active_row()
    assert post(f"/api/v1/indexes/{row.pk}/drop", {}, world.key("alice")).status_code == 409
    assert post("/api/v1/indexes/rollback", {}, world.key("alice")).status_code == 409
    assert post("/api/v1/indexes/999/switch", {}, world.key("alice")).status_code == 404


@pytest.mark.parametrize(("body", "status"), [({"model": "../etc"}, 422), ({"next": True}, 422), ({"mode": "x"}, 422)])
def test_what_cannot_be_built_is_refused(world, post, body, status):
    assert post("/api/v1/indexes", body, world.key("alice")).status_code == status
    assert EmbeddingIndex.objects.count() == 1


@pytest.mark.parametrize("name", ["bob", "charlie"])
@pytest.mark.parametrize("path", ["", "/rollback", "/1/build", "/1/switch", "/1/drop"])
def test_others_change_nothing(world, post, name, path):
    assert post(f"/api/v1/indexes{path}", {}, world.key(name)).status_code == 403
    assert post(f"/api/v1/indexes{path}", {}).status_code == 401
    assert EmbeddingIndex.objects.count() == 1


@pytest.mark.parametrize("model", ["unknown", "øæ", "../models", "a\ud800", "a\0b", "x" * 200, "é" * 200])
def test_a_model_that_is_not_there_is_the_requests_own_mistake(world, post, model):
    answer = post("/api/v1/indexes", json.dumps({"model": model}), world.key("alice"))
    assert (answer.status_code, answer.json()["error"]["code"]) == (422, "invalid_request")
