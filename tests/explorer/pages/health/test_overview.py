"""The overview, for admins."""

import re
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from corecube.models import AuditEvent, Connection
from retrieval.evaluation.question_sets import set_named
from retrieval.models import Document, EvaluationRun, RunCase, SearchRecord, Sync, Usage, Worker


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
    with django_assert_max_num_queries(41):
        alice.get("/overview/")


def test_usage_is_counted_in_the_period_and_leads_to_its_pages(browse, world):
    for user in (world.alice, world.bob, world.bob):
        search(user=user, surface="chat", feedback=1)
    search(user=world.alice, surface="chat", feedback=-1, is_refused=True)
    search(user=world.charlie, actor=world.alice, for_another=True)
    search(user=world.charlie)
    SearchRecord.objects.filter(user=world.charlie, for_another=False).update(at=timezone.now() - timedelta(days=9))
    Usage.objects.create(prompt_tokens=1200, completion_tokens=34, cost="1.5", seconds=1, model_name="M")
    figures = {it.key: it for it in browse("alice").get("/overview/?range=7d").context["usage"]}
    assert {key: it.value for key, it in figures.items()} == {
        "people": "2",
        "questions": "4",
        "unanswered": "1",
        "thumbs": "75% of 4",
        "tokens": "1,234",
        "cost": "1.50",
    }
    assert figures["unanswered"].address == "/unanswered/?since=week"


def test_unanswered_questions_lead_by_topic_to_their_searches(browse):
    for query in ("How many holidays do we have?", "Who approves a holiday?", "Is there a canteen?"):
        search(query=query, is_refused=True, verdict="not_answerable", surface="chat")
    alice = browse("alice")
    found = alice.get("/overview/").context["topics"]
    assert [(it.term, it.count) for it, _ in found] == [("holiday", 2), ("", 1)]
    assert len(alice.get(found[0][1]).context["page"]["rows"]) == 2


def test_late_and_failed_sources_come_first(browse, world):
    now = timezone.now()
    Connection.objects.update(last_synced_at=now - timedelta(hours=5), sync_every_minutes=180)
    Connection.objects.filter(pk=world.vault.pk).update(sync_every_minutes=60)
    Sync.objects.filter(connection=world.ledger).update(status="failed")
    states = [(it.connection.name, it.state) for it in browse("alice").get("/overview/").context["sources"]]
    assert states[:2] == [(world.ledger.name, "failed"), (world.vault.name, "late")]
    assert {state for _, state in states[2:]} == {"current"}


def test_the_trend_is_that_of_the_preset_measured_last(browse, world):
    found = set_named("Release questions", actor=world.alice)
    for preset, ndcg in (("corecube", 0.5), ("helix", 0.1), ("corecube", 0.75)):
        run = EvaluationRun.objects.create(question_set=found, preset=preset, user=world.alice, status="done")
        for query, value in (("a", ndcg), ("b", None)):
            RunCase.objects.create(run=run, query=query, is_answerable=True, measures={"ndcg": value}, milliseconds=1)
    EvaluationRun.objects.create(question_set=found, preset="corecube", is_draft=True, user=world.alice, status="done")
    (trend,) = browse("alice").get("/overview/").context["trends"]
    # From the bottom of the box, 22, one is 20 high: 22 - 20 * 0.5 and 22 - 20 * 0.75.
    assert (trend.ndcg, trend.change, trend.tone, trend.points) == ("0.750", "+0.250", "good", "0.0,12.0 100.0,7.0")
