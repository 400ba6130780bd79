"""Searching in other words: offered where it can be had, waited for, and nobody else's business."""

import json
import re
from html import unescape

import pytest
from django.test import Client

from retrieval.engine.metadata_conditions import Condition, Conditions
from retrieval.engine.stored_filter import FullFilter, filter_of
from retrieval.models import LanguageModel, QueuedSearch, RoutingRule
from retrieval.search.queued_searches import run_queued
from tests.fake_llm import FakeLLM, Fault

ASKED = "How do I undo a deployment?"


@pytest.fixture
def browse(people):
    def client(name):
        signed_in = Client()
        signed_in.force_login(people[name])
        return signed_in

    return client


@pytest.fixture
def fake():
    with FakeLLM() as running:
        running.says(json.dumps({"questions": ["roll back the release"]}))
        yield running


@pytest.fixture
def model(world, fake):
    return LanguageModel.objects.create(
        slug="m", name="M", base_url=fake.url, model="fake-small", is_default=True, max_retries=0
    )


def page(response):
    return response.content.decode()


@pytest.mark.usefixtures("world")
def test_it_is_offered_for_its_preset_where_there_is_a_language_model(browse):
    bob = browse("bob")
    asked = {"q": "rollback", "preset": "helix"}
    assert "Search with rephrased queries" not in page(bob.get("/", asked))
    LanguageModel.objects.create(slug="m", name="M", base_url="http://127.0.0.1:1/v1", model="m", is_default=True)
    assert "Search with rephrased queries" in page(bob.get("/", asked))
    assert "Search with rephrased queries" not in page(bob.get("/", {"q": "rollback"}))
    assert "Search with rephrased queries" not in page(bob.get("/", {**asked, "mode": "dense"}))


@pytest.mark.usefixtures("model")
class TestWaiting:
    def test_it_waits_and_leads_to_what_was_found(self, browse):
        bob = browse("bob")
        sent = bob.post("/queued/", {"q": ASKED, "without": "vault"})
        job = QueuedSearch.objects.get()
        assert (sent.status_code, sent.url) == (302, f"/queued/{job.pk}/")
        assert job.request["exclude"] == []
        waiting = bob.get(sent.url)
        assert "Waiting for a worker" in page(waiting)
        assert 'hx-trigger="every 2s"' in page(waiting)
        run_queued()
        job.refresh_from_db()
        done = bob.get(sent.url)
        assert f'href="/log/{job.record_id}/"' in page(done)
        assert 'hx-trigger="every' not in page(done)
        swapped = bob.get(sent.url, headers={"HX-Request": "true"})
        assert swapped["HX-Redirect"] == f"/log/{job.record_id}/"
        assert "Rolling back" in page(bob.get(f"/log/{job.record_id}/"))

    def test_it_is_asked_within_the_filter_of_the_page(self, browse):
        bob = browse("bob")
        limits = FullFilter(conditions=Conditions((Condition(("author",), "is", "Ann"),)))
        text = page(bob.get("/", {"q": ASKED, "preset": "helix", "filter": limits.text}))
        form = re.search(r'<form class="rephrase".*?</form>', text, re.DOTALL).group()
        kept = unescape(re.search(r'name="filter" value="([^"]+)"', form).group(1))
        bob.post("/queued/", {"q": ASKED, "filter": kept})
        assert filter_of(QueuedSearch.objects.get().request["filter"]) == limits
        assert bob.post("/queued/", {"q": ASKED, "filter": "x"}).status_code == 422

    def test_what_failed_says_why(self, browse, fake):
        fake.fault = Fault.ERROR
        bob = browse("bob")
        address = bob.post("/queued/", {"q": ASKED}).url
        run_queued()
        assert QueuedSearch.objects.get().message in page(bob.get(address))

    def test_it_is_nobody_elses(self, browse):
        address = browse("bob").post("/queued/", {"q": ASKED}).url
        assert browse("alice").get(address).status_code == 404
        assert browse("charlie").get(address).status_code == 404
        assert Client().get(address).status_code == 302

    def test_an_admin_asks_as_somebody_and_only_an_admin(self, browse):
        alice = browse("alice")
        address = alice.post("/queued/", {"q": ASKED, "as": "bob"}).url
        assert alice.get(address).status_code == 200
        assert browse("bob").get(address).status_code == 404
        assert browse("bob").post("/queued/", {"q": ASKED, "as": "alice"}).status_code == 403

    def test_a_bound_compartment_is_said(self, world, browse):
        RoutingRule.objects.create(compartment=world.ledger.compartment, language_model=None)
        alice = browse("alice")
        refused = alice.post("/queued/", {"q": ASKED})
        assert refused.status_code == 409
        assert "read everything in this search" in page(refused)
        assert alice.post("/queued/", {"q": ASKED, "without": "ledger"}).status_code == 302


@pytest.mark.usefixtures("world")
def test_without_a_language_model_it_says_so(browse):
    refused = browse("bob").post("/queued/", {"q": ASKED})
    assert refused.status_code == 409
    assert "No language model is available" in page(refused)
