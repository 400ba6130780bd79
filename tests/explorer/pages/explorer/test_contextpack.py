"""The Explorer on searches of `contextpack`: what was judged, what stands around the hits, and what was packed."""

import pytest

from retrieval.models import Document, LanguageModel, SearchRecord
from retrieval.search.prepare import kept_relevance
from tests.explorer.pages.explorer.test_views import HIDDEN, page
from tests.fake_llm import FakeLLM, Fault
from tests.retrieval.search.test_relevance import ANSWERING, ASKED, judging

ASK = {"q": ASKED, "preset": "contextpack"}


@pytest.fixture
def fake():
    kept_relevance.cache_clear()
    with FakeLLM() as running:
        running.says(judging)
        yield running


@pytest.fixture
def model(world, fake):
    return LanguageModel.objects.create(
        slug="m", name="M", base_url=fake.url, model="fake-small", is_default=True, max_retries=0
    )


@pytest.mark.usefixtures("model")
def test_the_ledger_tells_what_was_judged_and_why(browse):
    text = page(browse("bob").get("/", {**ASK, "stage": "judge_relevance"}))
    assert "LLM relevance" in text
    assert "100 of 100" in text
    assert "answers the question" in text
    assert f"evidence: \N{LEFT DOUBLE QUOTATION MARK}{ANSWERING}\N{RIGHT DOUBLE QUOTATION MARK}" in text
    assert "scored by a language model" in text or "m scored" in text
    assert not [word for word in HIDDEN if word in text]


def test_without_a_model_the_scale_says_that_nobody_judged(browse):
    text = page(browse("bob").get("/", ASK))
    assert "Scaled score" in text
    assert "not graded by the language model" in text
    assert "evidence:" not in text


@pytest.mark.usefixtures("model")
def test_a_failure_is_shown_and_the_page_stands(browse, fake):
    fake.fault = Fault.ERROR
    response = browse("bob").get("/", ASK)
    assert response.status_code == 200
    assert "language model failed to score" in page(response)


def test_funnel_and_context_speak_of_hits_and_what_is_around(browse):
    ask = {"q": "how do we roll back staging?", "preset": "contextpack"}
    text = "".join(page(browse("bob").get("/", {**ask, "stage": it})) for it in ("judge_relevance", "pack_context"))
    for label in ("reranked", "neighbours", "packed"):
        assert label in text
    assert "hit · " in text
    assert "relevance.top" in text
    assert "context.budget_tokens" in text


def test_where_did_it_go_follows_a_document_through_every_stage(browse):
    pinned = Document.objects.get(title="Rolling back")
    response = browse("bob").get("/", {**ASK, "q": "roll back staging", "tab": "where", "pin": str(pinned.pk)})
    steps = {step["name"]: step for step in response.context["where"]["lifeline"]["steps"]}
    assert {"judge_relevance", "neighbours", "packed"} <= set(steps)
    assert steps["packed"]["fact"].startswith("packed as [")
    assert steps["judge_relevance"]["fact"].startswith("rank ")


def test_a_document_behind_the_packed_ones_is_told_the_number_that_cut_it(browse, world, client):
    headers = {"Authorization": f"Bearer {world.key('bob')}"}
    documents = [str(it) for it in Document.objects.filter(connection=world.runbooks).values_list("pk", flat=True)]
    told = ""
    for document in documents:
        asked = {"q": "rollback queue", "document": document, "preset": "contextpack", "top_k": "1"}
        answer = client.get("/api/v1/lifeline", asked, headers=headers)
        assert answer.status_code == 200
        told += answer.content.decode()
    assert "packed as [1]" in told
    assert "Requesting 2 hits would have included it." in told


def test_an_admin_changes_its_numbers_by_the_form(browse):
    text = page(browse("alice").get("/presets/contextpack/"))
    for name in ("relevance.candidates", "neighbours.cross_page", "context.min_primary"):
        assert f'name="{name}"' in text


def test_a_logged_search_is_shown_again(browse):
    browse("bob").get("/", ASK)
    record = SearchRecord.objects.get()
    assert ANSWERING not in str(record.trace)
    response = browse("alice").get(f"/log/{record.pk}/")
    assert response.status_code == 200


@pytest.mark.usefixtures("model")
def test_the_answer_cites_passages_of_the_pack(world, client, fake):
    fake.says(lambda body: judging(body) if "You judge" in body["messages"][0]["content"] else "It takes a while [1].")
    body = {"model": "contextpack", "messages": [{"role": "user", "content": ASKED}]}
    headers = {"Authorization": f"Bearer {world.key('bob')}"}
    told = client.post("/v1/chat/completions", body, content_type="application/json", headers=headers).json()
    assert told["choices"][0]["message"]["content"] == "It takes a while [1]."
    assert told["corecube"]["preset"] == "contextpack"
    assert len(told["citations"]) >= 1
