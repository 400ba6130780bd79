"""The overview, for admins."""

import re

import pytest
from django.test import Client

from corecube.models import AuditEvent
from retrieval.models import Document, SearchRecord, Sync, Worker


def page(response):
    return response.content.decode()


def search(**values):
    fields = {"preset": "corecube", "milliseconds": 40.0, "hit_count": 3, "query": "where is the queue drained?"}
    return SearchRecord.objects.create(**{**fields, **values})


def test_an_admin_sees_what_happened_and_what_to_look_at(browse, world):
    search()
    Sync.objects.filter(connection=world.runbooks).update(status="failed", message="The folder is gone.")
    text = page(browse("alice").get("/overview/"))
    assert 'data-chart="chart-data-latency"' in text
    assert 'id="chart-data-volume"' in text
    assert "The last sync of Runbooks failed" in text
    assert "The folder is gone." in text
    assert "where is the queue drained?" in text
    assert "No worker is running" in text


@pytest.mark.parametrize("name", ["bob", "charlie"])
@pytest.mark.parametrize("path", ["/overview/", "/overview/jobs/"])
def test_for_others_it_does_not_exist(browse, name, path):
    search(query="zanzibar")
    response = browse(name).get(path)
    assert response.status_code == 404
    assert "zanzibar" not in page(response)
    assert "/overview/" not in page(browse(name).get("/explorer/"))


def test_strangers_are_sent_to_sign_in(world):
    for path in ("/overview/", "/models/", "/health/"):
        assert Client().get(path).headers["Location"].startswith("/login/")


@pytest.mark.parametrize(("asked", "chosen"), [("7d", "7d"), ("30d", "30d"), ("", "24h"), ("x", "24h")])
def test_the_address_says_how_far_back_it_looks(browse, asked, chosen):
    response = browse("alice").get("/overview/", {"range": asked})
    assert response.context["range"] == chosen
    assert re.search(rf'href="\?range={chosen}" aria-current="true"', page(response))


def test_the_charts_numbers_are_those_of_the_searches(browse, world):
    for milliseconds in (10, 30):
        search(milliseconds=milliseconds)
    latency, volume = browse("alice").get("/overview/").context["charts"]
    assert [value for value in latency.data[1]["y"] if value is not None] == [20.0]
    assert sum(volume.data[0]["y"]) == 2


def test_without_searches_it_says_so(browse):
    assert "No searches in this period" in page(browse("alice").get("/overview/"))


def test_the_guide_stands_there_until_it_is_put_away(browse):
    alice = browse("alice")
    text = page(alice.get("/overview/"))
    assert 'data-step="source" data-done="yes"' in text
    assert 'data-step="measure" data-done="no"' in text
    assert alice.post("/overview/guide/dismiss/").headers["Location"] == "/overview/"
    assert 'id="guide"' not in page(alice.get("/overview/"))
    assert 'id="guide"' in page(alice.get("/overview/?guide=1"))
    assert AuditEvent.objects.filter(action="guide.dismissed", actor__username="alice").count() == 1
    assert browse("bob").post("/overview/guide/dismiss/").status_code == 404


def test_an_empty_installation_leads_an_admin_from_the_explorer_to_the_guide(browse):
    assert "No documents yet" not in page(browse("alice").get("/explorer/"))
    Document.objects.all().delete()
    assert "/overview/?guide=1" in page(browse("alice").get("/explorer/"))
    assert "No documents yet" not in page(browse("bob").get("/explorer/"))


def test_jobs_at_work_are_asked_for_again(browse, world):
    assert "hx-get" not in page(browse("alice").get("/overview/jobs/"))
    Sync.objects.create(connection=world.vault)
    text = page(browse("alice").get("/overview/jobs/"))
    assert 'hx-get="/overview/jobs/"' in text
    assert "Vault" in text


def test_a_page_costs_a_fixed_number_of_statements(browse, world, django_assert_max_num_queries):
    Worker.objects.create(host="vm", pid=1, started_at="2026-01-01T00:00Z", seen_at="2026-01-01T00:00Z")
    for _ in range(20):
        search()
    alice = browse("alice")
    alice.get("/overview/")
    with django_assert_max_num_queries(34):
        alice.get("/overview/")
