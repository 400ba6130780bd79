import json
import os
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from threading import enumerate as enumerate_threads

import pytest
from django.db.migrations.recorder import MigrationRecorder
from django.test import Client

from corecube.errors import UnavailableError
from corecube.health import require_database
from retrieval.encoders.reranker import UnavailableReranker
from retrieval.errors import ModelMissingError, RerankError
from retrieval.index import active
from retrieval.operations import health
from retrieval.presets.consolidated.evidence.rerank_guard import BreakerConfig
from retrieval.presets.consolidated.evidence.scoring import RerankPlanConfig
from retrieval.search import runtime
from tests.race import until
from tests.retrieval.presets.consolidated.stages.sectioned import CrossEncoder


@pytest.fixture(autouse=True)
def patience(request, monkeypatch):
    """Wait for parts that are only slow, on a busy machine, except where one hangs."""
    if "hanging" not in request.fixturenames:
        monkeypatch.setattr(health, "_PART_SECONDS", 60.0)


def get(client, path):
    response = client.get(path)
    return response.status_code, response.json()


def test_a_living_process_says_so_without_asking_the_database(client):
    assert get(client, "/healthz") == (200, {"status": "ok"})


@pytest.mark.django_db
def test_an_installation_that_can_search_is_ready(client):
    names = ("database", "model", "reranker", "bm25", "vectors", "language_model", "redis", "backup")
    parts = dict.fromkeys(names, "ok")
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

    monkeypatch.setattr(active, "encoder", missing)
    status, body = get(client, "/readyz")
    assert (status, body["status"], body["parts"]["model"]) == (503, "failed", "failed")
    assert "secret" not in str(body)


@pytest.mark.django_db(transaction=True)
def test_pending_migrations_are_not_ready(client):
    last = MigrationRecorder.Migration.objects.filter(app="retrieval").order_by("-name").first()
    MigrationRecorder.Migration.objects.filter(pk=last.pk).delete()
    try:
        with pytest.raises(UnavailableError, match="migrate"):
            require_database()
        assert get(client, "/readyz")[1]["parts"]["database"] == "failed"
    finally:
        last.save(force_insert=True)


def test_a_database_that_does_not_answer_is_not_ready(client):
    # Outside of a test with a database every use of it fails.
    status, body = get(client, "/readyz")
    assert (status, body["status"], body["parts"]["database"]) == (503, "failed", "failed")


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
def test_nothing_is_changed_there(client, path):
    assert client.post(path).status_code == 405


@pytest.mark.parametrize("name", ["bm25", "vectors"])
def test_a_machine_without_its_read_model_degrades(client, transactional_db, world, settings, name):
    setattr(settings, f"CORECUBE_{name.upper()}", True)
    status, body = get(client, "/readyz")
    assert (status, body["status"], body["parts"][name]) == (200, "degraded", "degraded")


@pytest.fixture
def hanging(monkeypatch):
    """Let a part hang until the test is over; return how often it was asked."""
    is_over = Event()
    asked = []

    def hang(*_):
        asked.append(True)
        is_over.wait()
        raise ModelMissingError

    def begin(module, name):
        monkeypatch.setattr(module, name, hang)
        return asked

    yield begin
    is_over.set()
    until(lambda: not any(thread.name == "check" for thread in enumerate_threads()), seconds=60)


@pytest.mark.django_db
def test_a_model_that_hangs_is_not_waited_for(client, hanging):
    hanging(active, "encoder")
    status, body = get(client, "/readyz")
    assert (status, body["parts"]["model"]) == (503, "failed")
    assert "model" in body["timed_out"]


@pytest.mark.django_db
def test_a_reranker_that_hangs_degrades(client, hanging):
    hanging(runtime, "reranker")
    body = get(client, "/readyz")[1]
    assert body["parts"]["reranker"] == "degraded"
    assert "reranker" in body["timed_out"]


@pytest.mark.django_db
def test_however_many_ask_a_part_that_hangs_it_is_asked_once(client, hanging):
    asked = hanging(active, "encoder")
    with ThreadPoolExecutor(20) as threads:
        answers = list(threads.map(lambda _: get(Client(), "/readyz"), range(60)))
    assert all("model" in body["timed_out"] for _, body in answers)
    assert len(asked) == 1
    assert sum(thread.name == "check" for thread in enumerate_threads()) <= 4


_SILENT = """
import json
import django
django.setup()
from django.test import Client
told = []
for path in ("/readyz", "/readyz", "/healthz"):
    response = Client(headers={"host": "localhost"}).get(path)
    told.append([response.status_code, response.json()])
print(json.dumps(told))
"""


def test_a_database_that_takes_connections_and_says_nothing_is_not_waited_for():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"postgres://nobody@127.0.0.1:{silent.getsockname()[1]}/corecube"
        environment = {**os.environ, "DJANGO_SETTINGS_MODULE": "corecube.settings", "DATABASE_URL": url}
        done = subprocess.run(
            [sys.executable, "-c", _SILENT], env=environment, capture_output=True, text=True, check=True
        )
    (first, second, health) = json.loads(done.stdout.splitlines()[-1])
    for status, body in (first, second):
        assert (status, body["parts"]["database"]) == (503, "failed")
        # The connection itself would be given up after 5 s.
        assert "database" in body["timed_out"]
    assert health[0] == 200
