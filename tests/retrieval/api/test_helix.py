"""The preset `helix` as programs and agents ask it: by search, by chat, by recall."""

import json

import pytest

from retrieval.index.bm25.follower import follower
from retrieval.index.writer import delete_documents
from retrieval.models import Document, PresetVersion, SearchRecord
from retrieval.presets.helix.route_examples import Routers
from retrieval.search import runtime


@pytest.fixture
def ask(world, client, settings, monkeypatch):
    """Return a function that posts as Bob and returns the answer's JSON; only "Hello" needs no search.

    No search is out of time on a machine that is busy.
    """
    PresetVersion.objects.create(preset="helix", number=1, status="live", values={"deadline_ms": 10_000})
    examples = {"greeting": ["Hello"], "search": ["what is the limit of expenses"]}
    monkeypatch.setattr("retrieval.presets.helix.route_examples.shipped_examples", lambda: examples)
    monkeypatch.setattr(runtime, "_routers", Routers())
    settings.CORECUBE_BM25 = True
    follower().rebuild()
    headers = {"Authorization": f"Bearer {world.key('bob')}"}

    def post(path, **body):
        response = client.post(path, json.dumps(body), content_type="application/json", headers=headers)
        assert response.status_code == 200, response.content
        return response.json()

    return post


def chat(ask, text):
    return ask("/v1/chat/completions", model="helix", messages=[{"role": "user", "content": text}])


def test_a_search_says_how_it_was_made(ask):
    found = ask("/api/v1/search", query="how do we roll back staging?", preset="helix", explain=True)
    assert found["hits"][0]["title"] == "Rolling back"
    assert (found["preset"], found["skipped"], found["degraded"]) == ("helix", "", [])
    assert {"route", "bm25", "expand", "signals", "pack"} <= {span["stage"] for span in found["explain"]["spans"]}


@pytest.fixture
def pages(world, sync_once):
    """Two pages of which one speaks of the other, which Bob may see, and a third that only Alice may."""
    texts = {
        "runbooks/guy.md": "# Guy of Tuscany\n\nA count. His brother was Lambert of Spoleto.\n",
        "runbooks/lambert.md": "# Lambert of Spoleto\n\nA margrave, dismissed in the year 931.\n",
        "vault/hidden.md": "# Ageltrude\n\nShe hid Guy of Tuscany and Lambert of Spoleto.\n",
    }
    for path, text in texts.items():
        (world.root / path).write_text(text)
    sync_once(world.runbooks, world.vault)
    return world


_BROTHER = "When was the brother of Guy of Tuscany dismissed?"


def explained(pages, post, name):
    body = {"query": _BROTHER, "preset": "helix", "explain": True, "top_k": 100}
    return post("/api/v1/search", body, pages.key(name)).json()["hits"]


@pytest.mark.parametrize("name", ["alice", "bob"])
def test_the_ledger_says_what_lifted_a_hit(pages, post, name):
    hits = {hit["title"]: hit for hit in explained(pages, post, name)}
    named, linked = hits["Guy of Tuscany"], hits["Lambert of Spoleto"]
    assert named["explain"]["lifts"][0] == {
        "kind": "named",
        "amount": 1.0,
        "name": "Guy of Tuscany",
        "source_chunk": None,
        "sentence": "",
    }
    (lift,) = (it for it in linked["explain"]["lifts"] if it["source_chunk"] == named["chunk_id"])
    assert (lift["kind"], lift["name"]) == ("link", "Lambert of Spoleto")
    assert lift["sentence"] == "His brother was Lambert of Spoleto."
    for hit in (named, linked):
        told = sum(it["amount"] for it in hit["explain"]["lifts"])
        assert hit["explain"]["signals"]["graph"] == pytest.approx(min(1.0, told))


def test_no_lift_comes_from_what_is_hidden(pages, post):
    hidden = Document.objects.get(title="Ageltrude")
    told = json.dumps(explained(pages, post, "bob"))
    assert str(hidden.pk) not in told
    assert "She hid" not in told
    before = lifts(explained(pages, post, "bob"))
    delete_documents([hidden.pk])
    assert lifts(explained(pages, post, "bob")) == before


def lifts(hits):
    return {hit["chunk_id"]: hit["explain"]["lifts"] for hit in hits}


def test_who_is_no_admin_is_told_bm25_in_two_digits(ask, pages, post):
    follower().rebuild()
    told, exact = (
        [hit["explain"]["signals"]["bm25"] for hit in explained(pages, post, name) if "bm25" in hit["explain"]["ranks"]]
        for name in ("bob", "alice")
    )
    assert told == [float(f"{score:.2g}") for score in told]
    assert exact != [float(f"{score:.2g}") for score in exact]
    for hit in explained(pages, post, "bob"):
        assert sum(hit["explain"]["contributions"].values()) == pytest.approx(hit["score"])


def test_a_chat_with_the_model_helix_answers_from_its_passages(ask):
    answer = chat(ask, "How many minutes does draining the queue take?")
    assert (answer["model"], answer["corecube"]["preset"]) == ("helix", "helix")
    assert "four minutes" in answer["choices"][0]["message"]["content"]
    assert answer["citations"]


def test_what_needs_no_search_is_told_and_not_called_unknown(ask):
    found = ask("/api/v1/search", query="Hello!", preset="helix")
    assert found["hits"] == found["passages"] == []
    assert found["skipped"].startswith("Nothing was searched: the question matches the route greeting")
    said = chat(ask, "Hello!")["choices"][0]["message"]["content"]
    assert said.startswith("I answer questions about your documents")
    assert "is close to this question" not in said
    recalled = ask("/api/v1/recall", query="Hello!")
    assert recalled["items"] == []
    assert recalled["skipped"].startswith("Nothing was searched")
    assert set(SearchRecord.objects.values_list("preset", "hit_count")) == {("helix", 0)}


def test_recall_brings_back_what_was_remembered_and_keeps_to_its_limits(ask):
    for kind, text in (("decision", "We decided to drain the queue by night."), ("episodic", "The queue was drained.")):
        ask("/api/v1/remember", kind=kind, text=text, project="atlas")
    follower().rebuild()
    found = ask("/api/v1/recall", query="when do we drain the queue?", kinds=["decision"], project="atlas")
    memory = [item for item in found["items"] if item["origin"] == "memory"]
    assert [item["kind"] for item in memory] == ["decision"]
    assert found["skipped"] == ""
    kept = SearchRecord.objects.get(trace__filter__project="atlas")
    assert kept.trace["filter"] == {"project": "atlas", "memory_types": ["decision"]}
