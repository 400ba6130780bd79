"""Health, for admins."""

from datetime import timedelta

import pytest
from django.urls import reverse
from django.utils import timezone

from corecube.models import Backup
from explorer.pages.health.views import _ADVICE
from retrieval.encoders.reranker import UnavailableReranker
from retrieval.ingest.workers import record_worker
from retrieval.search import runtime


def page(response):
    return response.content.decode()


def test_an_admin_sees_every_part_the_versions_and_the_settings(browse, settings):
    record_worker()
    response = browse("alice").get("/health/")
    assert [row.key for row in response.context["rows"]] == [
        "database",
        "model",
        "index",
        "reranker",
        "bm25",
        "vectors",
        "language_model",
        "redis",
        "backup",
        "load",
        "ingest",
        "workers",
        "queue",
        "disk",
    ]
    assert all(row.is_well for row in response.context["rows"] if row.key not in {"disk", "ingest"})
    assert set(response.context["versions"]) >= {"CoreCube", "PostgreSQL", "pgvector", "django", "onnxruntime"}
    assert 'data-setting="CORECUBE_LEG_THREADS"' in page(response)
    # The test's own folder is set from outside.
    assert "environment <span" in page(response) or "CORECUBE_VAR_DIR" in page(response)
    assert settings.SECRET_KEY not in page(response)


def test_the_load_is_shown_with_its_figures(browse):
    text = page(browse("alice").get("/health/"))
    assert 'id="load"' in text
    assert 'data-figure="slots"' in text
    assert 'href="/metrics"' in text


def test_what_is_wrong_is_told_with_its_reason(browse, monkeypatch):
    monkeypatch.setattr(runtime, "reranker", lambda: UnavailableReranker("small", "It is not on this machine."))
    text = page(browse("alice").get("/health/"))
    assert 'data-part="reranker" data-tone="warn"' in text
    assert "It is not on this machine." in text
    assert 'data-first="reranker"' in text
    assert text.index("What to do first") < text.index('data-part="database"')


def test_the_last_backup_and_what_is_wrong_with_it_are_shown(browse, settings):
    settings.CORECUBE_BACKUP_TO = "/backups"
    at = timezone.now() - timedelta(days=3)
    Backup.objects.create(place="/backups", host="here", name="20261126T193000Z", size=2_000_000, finished_at=at)
    alice = browse("alice")
    assert "20261126T193000Z, 2.0 MB" in page(alice.get("/health/"))
    assert 'data-part="backup" data-tone="good"' in page(alice.get("/health/"))
    Backup.objects.update(started_at=at)
    text = page(alice.get("/health/"))
    assert 'data-part="backup" data-tone="warn"' in text
    assert "overdue" in text


def test_every_part_has_an_advice_and_its_page_exists(browse):
    rows = browse("alice").get("/health/").context["rows"]
    # An installation without replicas has no row for them.
    assert set(_ADVICE) == {row.key for row in rows} | {"replicas"}
    assert all(reverse(f"explorer:{it['page']}") for it in _ADVICE.values() if "page" in it)


@pytest.mark.parametrize("name", ["bob", "charlie"])
def test_for_others_it_does_not_exist(browse, name):
    response = browse(name).get("/health/")
    assert response.status_code == 404
    assert "PostgreSQL" not in page(response)
    assert "/health/" not in page(browse(name).get("/explorer/"))


def test_a_page_costs_a_fixed_number_of_statements(browse, django_assert_max_num_queries):
    alice = browse("alice")
    alice.get("/health/")
    with django_assert_max_num_queries(12):
        alice.get("/health/")
