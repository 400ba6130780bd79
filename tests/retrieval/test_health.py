import pytest
from django.db.migrations.recorder import MigrationRecorder

from corecube.errors import UnavailableError
from corecube.health import require_database
from retrieval import runtime
from retrieval.encoders.reranker import UnavailableReranker
from retrieval.errors import ModelMissingError, RerankError
from retrieval.evidence.config import BreakerConfig, RerankPlanConfig
from tests.retrieval.stages.sectioned import CrossEncoder


def get(client, path):
    response = client.get(path)
    return response.status_code, response.json()


def test_a_living_process_says_so_without_asking_the_database(client):
    assert get(client, "/healthz") == (200, {"status": "ok"})


@pytest.mark.django_db
def test_an_installation_that_can_search_is_ready(client):
    parts = {"database": "ok", "model": "ok", "reranker": "ok", "bm25": "ok", "language_model": "ok"}
    assert get(client, "/readyz") == (200, {"status": "ok", "parts": parts})


@pytest.mark.django_db
def test_a_reranker_that_is_down_degrades(client, monkeypatch):
    monkeypatch.setattr(runtime, "reranker", lambda: UnavailableReranker("x", "secret reason"))
    status, body = get(client, "/readyz")
    assert (status, body["status"], body["parts"]["reranker"]) == (200, "degraded", "degraded")
    assert "secret" not in str(body)


@pytest.mark.django_db
def test_a_service_whose_breaker_is_open_degrades_until_it_answers(client, settings, rerank_server):
    settings.CORECUBE_RERANKER, settings.CORECUBE_RERANKER_KIND = "http", "tei"
    settings.CORECUBE_RERANKER_URL = rerank_server.url
    reranker = runtime.reranker()
    rerank_server.give([{"index": 0, "score": 0.5}])
    assert reranker.score("q", ["t"], timeout_seconds=5) == [0.5]
    assert get(client, "/readyz")[1]["status"] == "ok"
    rerank_server.give(b"", status="500 Oops")
    for _ in range(3):
        with pytest.raises(Exception, match="status 500"):
            reranker.score("q", ["t"], timeout_seconds=5)
    status, body = get(client, "/readyz")
    assert (status, body["status"], body["parts"]["reranker"]) == (200, "degraded", "degraded")
    reranker.close()


@pytest.mark.django_db
def test_a_reranker_that_searches_for_evidence_leave_alone_degrades(client, monkeypatch):
    reranker = CrossEncoder()
    monkeypatch.setattr(runtime, "reranker", lambda: reranker)
    guard = runtime.rerank_guards.guard(reranker, BreakerConfig(), RerankPlanConfig())
    assert get(client, "/readyz")[1]["parts"]["reranker"] == "ok"
    for _ in range(3):
        with pytest.raises(RerankError), guard.breaker.guarding():
            raise RerankError
    assert get(client, "/readyz")[1]["parts"]["reranker"] == "degraded"


@pytest.mark.django_db
def test_without_its_embedding_model_an_installation_is_not_ready(client, monkeypatch):
    def missing(*_):
        raise ModelMissingError("secret path")

    monkeypatch.setattr(runtime, "encoder", missing)
    status, body = get(client, "/readyz")
    assert (status, body["status"], body["parts"]["model"]) == (503, "failed", "failed")
    assert "secret" not in str(body)


@pytest.mark.django_db
def test_pending_migrations_are_not_ready(client):
    MigrationRecorder.Migration.objects.filter(app="retrieval").order_by("-name").first().delete()
    with pytest.raises(UnavailableError, match="migrate"):
        require_database()
    assert get(client, "/readyz")[1]["parts"]["database"] == "failed"


def test_a_database_that_does_not_answer_is_not_ready(client):
    # Outside of a test with a database every use of it fails.
    status, body = get(client, "/readyz")
    assert (status, body["status"], body["parts"]["database"]) == (503, "failed", "failed")


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
def test_nothing_is_changed_there(client, path):
    assert client.post(path).status_code == 405


@pytest.mark.django_db
def test_a_machine_without_its_bm25_index_degrades(client, settings):
    settings.CORECUBE_BM25 = True
    status, body = get(client, "/readyz")
    assert (status, body["status"], body["parts"]["bm25"]) == (200, "degraded", "degraded")
