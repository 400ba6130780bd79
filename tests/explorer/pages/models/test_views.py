"""Models and embedding indexes, for admins."""

import pytest

from corecube.models import AuditEvent
from retrieval.index import active, embedding_index
from retrieval.ingest import index_tasks, indexes, reindex
from retrieval.models import Chunk, Document, Embedding, EmbeddingIndex
from tests.fakes import HashEncoder
from tests.indexes import Other, other_index


class Choice:
    source = "local:other"

    def load(self):
        return Other(dim=32)


def page(response):
    return response.content.decode()


@pytest.fixture
def queued(monkeypatch):
    """Return what is handed to workers, in order."""
    found = []
    for name in ("build", "clear"):
        task = getattr(index_tasks, name)
        monkeypatch.setattr(task, "delay", lambda *args, name=name: found.append((name, *args)))
    return found


@pytest.fixture
def second(world, monkeypatch):
    return other_index(monkeypatch)


def built(row):
    assert reindex.build_index(row)
    return row


def actions():
    found = AuditEvent.objects.filter(action__startswith="index.").order_by("pk")
    return [(event.action, event.actor.username, event.subject) for event in found]


def test_an_admin_sees_the_models_and_the_indexes(browse, second):
    response = browse("alice").get("/models/")
    assert [card.name for card in response.context["cards"]] == ["hash", "none"]
    active, building = response.context["indexes"]
    assert (active["status"], active["made"].done) == ("active", Chunk.objects.count())
    assert (building["status"], building["made"].done, building["index"].dim) == ("building", 0, 32)
    # While one is built the page asks again; and no third can be begun.
    assert 'hx-get="/models/" hx-trigger="every 3s"' in page(response)
    assert "Build index" not in page(response)


def test_documents_of_an_earlier_ingestion_version_are_counted_by_connection(browse, world):
    assert browse("alice").get("/models/").context["older"] == []
    Document.objects.filter(connection=world.vault).update(ingest_version=0)
    response = browse("alice").get("/models/")
    assert [(it.slug, it.version, it.documents) for it in response.context["older"]] == [("vault", 0, 1)]
    assert 'data-connection="vault"' in page(response)


def test_the_table_of_models_is_there_to_choose_from(browse, world):
    response = browse("alice").get("/models/")
    assert 'data-model="mxbai-embed-large-v1"' in page(response)
    choices = dict(response.context["form"].fields["model"].choices)
    assert choices["arctic-embed-l-v2.0"] == "arctic-embed-l-v2.0 (not installed)"


def test_a_listed_model_that_is_not_here_is_refused_and_one_reads_how_to_get_it(browse, world, settings, tmp_path):
    settings.CORECUBE_MODELS_DIR = tmp_path
    response = browse("alice").post("/models/indexes/", {"model": "gte-small", "mode": "chunk_first"})
    assert response.status_code == 409
    assert "manage.py models fetch gte-small" in page(response)


def test_the_progress_is_a_part_of_the_page(browse, second, htmx):
    whole, part = browse("alice").get("/models/"), browse("alice").get("/models/", headers=htmx)
    assert 'id="indexes"' in page(whole)
    assert 'id="indexes"' in page(part)
    assert "<html" not in page(part)
    assert f"Index {second.pk}: 0 percent" in page(part)


def test_an_index_is_begun_and_handed_to_a_worker(
    browse, world, monkeypatch, queued, django_capture_on_commit_callbacks
):
    monkeypatch.setattr(indexes, "chosen", lambda **_: Choice())
    monkeypatch.setattr("explorer.pages.models.views.MODEL_TABLE", ["other"])
    with django_capture_on_commit_callbacks(execute=True):
        response = browse("alice").post("/models/indexes/", {"model": "other", "dimensions": "", "mode": "chunk_first"})
    assert response.headers["Location"] == "/models/"
    row = EmbeddingIndex.objects.get(status="building")
    assert (row.model, row.dim, queued) == ("other", 32, [("build", row.pk)])
    assert actions() == [("index.started", "alice", str(row.pk))]


def test_an_index_is_begun_with_another_walk_over_the_same_model(browse, world, monkeypatch, queued):
    class Same:
        source = "local:hash"

        def load(self):
            return HashEncoder()

    monkeypatch.setattr(indexes, "chosen", lambda **_: Same())
    monkeypatch.setattr("explorer.pages.models.views.MODEL_TABLE", ["hash"])
    sent = {"model": "hash", "mode": "chunk_first", "scan": "binary", "oversample": "6"}
    assert browse("alice").post("/models/indexes/", sent).status_code == 302
    row = EmbeddingIndex.objects.get(status="building")
    assert (row.scan, row.oversample) == ("binary", 6)
    assert "binary, 6 candidates per hit" in page(browse("alice").get("/models/"))


def test_a_prefix_is_refused_where_the_model_was_not_trained_so(browse, world, monkeypatch):
    monkeypatch.setattr("explorer.pages.models.views.MODEL_TABLE", ["hash"])
    monkeypatch.setattr(indexes, "chosen", lambda **_: Choice())
    sent = {"model": "hash", "mode": "chunk_first", "scan": "prefix", "scan_dimensions": "16"}
    response = browse("alice").post("/models/indexes/", sent)
    assert response.status_code == 409
    assert "was not trained so" in page(response)


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        ({"model": "no-such-model"}, 422),
        ({"model": "../etc"}, 422),
        ({"model": "hash", "dimensions": "0"}, 422),
        ({"model": "hash", "mode": "sideways"}, 422),
        ({"model": "hash", "scan": "sideways"}, 422),
        ({"model": "hash", "scan": "binary", "oversample": "0.5"}, 422),
    ],
)
def test_what_cannot_be_built_is_refused(browse, world, sent, status, monkeypatch):
    monkeypatch.setattr("explorer.pages.models.views.MODEL_TABLE", ["hash"])
    response = browse("alice").post("/models/indexes/", sent)
    assert response.status_code == status
    assert 'role="alert"' in page(response)
    assert EmbeddingIndex.objects.count() == 1


def test_a_model_that_the_active_index_has_already_is_refused_with_the_reason(browse, world, monkeypatch):
    class Same:
        source = "local:hash"

        def load(self):
            return HashEncoder()

    monkeypatch.setattr(indexes, "chosen", lambda **_: Same())
    monkeypatch.setattr("explorer.pages.models.views.MODEL_TABLE", ["hash"])
    response = browse("alice").post("/models/indexes/", {"model": "hash"})
    assert response.status_code == 409
    assert "already uses this model" in page(response)


def test_switching_asks_first_and_rolling_back_is_one_step(browse, second):
    alice, old = browse("alice"), embedding_index.active_row()
    address = f"/models/indexes/{second.pk}/switch/"
    assert "Switching requires all of them" in page(alice.get(address))
    alice.post(address)
    assert embedding_index.active_row().pk == old.pk
    built(second)
    assert f"Switch to index {second.pk}?" in page(alice.get(address))
    assert embedding_index.active_row().pk == old.pk
    alice.post(address)
    assert embedding_index.active_row().pk == second.pk
    assert f"Roll back to index {old.pk}?" in page(alice.get(f"/models/indexes/{old.pk}/switch/"))
    alice.post(f"/models/indexes/{old.pk}/switch/")
    assert embedding_index.active_row().pk == old.pk
    assert [it[0] for it in actions()] == ["index.switched", "index.switched"]


def test_dropping_asks_first_and_a_worker_clears_the_vectors(
    browse, second, queued, django_capture_on_commit_callbacks
):
    built(second)
    address = f"/models/indexes/{second.pk}/drop/"
    assert f"Delete index {second.pk}?" in page(browse("alice").get(address))
    assert EmbeddingIndex.objects.filter(pk=second.pk).exists()
    with django_capture_on_commit_callbacks(execute=True):
        browse("alice").post(address)
    assert not EmbeddingIndex.objects.filter(pk=second.pk).exists()
    assert queued == [("clear",)]
    index_tasks.clear()
    assert not Embedding.objects.filter(index_id=second.pk).exists()
    assert actions() == [("index.dropped", "alice", str(second.pk))]


def test_a_building_that_stopped_goes_on(browse, second, queued, django_capture_on_commit_callbacks):
    EmbeddingIndex.objects.filter(pk=second.pk).update(problem="The service is down.")
    text = page(browse("alice").get("/models/"))
    assert "The service is down." in text
    assert f'action="/models/indexes/{second.pk}/build/"' in text
    with django_capture_on_commit_callbacks(execute=True):
        browse("alice").post(f"/models/indexes/{second.pk}/build/")
    assert queued == [("build", second.pk)]


def test_the_active_index_cannot_be_dropped_or_switched_to(browse, world):
    row = embedding_index.active_row()
    for action in ("drop", "switch"):
        for send in (browse("alice").get, browse("alice").post):
            assert send(f"/models/indexes/{row.pk}/{action}/").status_code == 404
    assert embedding_index.active_row() == row


@pytest.mark.parametrize("name", ["bob", "charlie"])
def test_for_others_nothing_of_it_exists(browse, second, name, queued):
    user = browse(name)
    assert user.get("/models/").status_code == 404
    assert user.post("/models/indexes/", {"model": "hash"}).status_code == 404
    for action in ("build", "switch", "drop"):
        assert user.post(f"/models/indexes/{second.pk}/{action}/").status_code == 404
    assert EmbeddingIndex.objects.count() == 2
    assert queued == []


def test_a_model_that_is_missing_says_so(browse, world, monkeypatch):
    from retrieval.errors import ModelMissingError

    def missing(*_):
        raise ModelMissingError("The model is not here.")

    monkeypatch.setattr(active, "encoder", missing)
    text = page(browse("alice").get("/models/"))
    assert "unavailable" in text
    assert "The model is not here." in text
