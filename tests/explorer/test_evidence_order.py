"""The order of evidence follows from what the Explorer and the API tell of each hit, and each hit says why it leads."""

import math
from collections import Counter
from itertools import pairwise

import pytest
from django.test import Client

from corecube.models import ApiKey, User
from retrieval.presets.consolidated.evidence.section_reading import shipped
from retrieval.search import runtime
from tests.explorer.test_ledger_order import QUESTIONS, VowelReranker, opened_hits
from tests.explorer.test_ledger_order import reader as employee

__all__ = ["employee"]

KEPT = 10
#: Five of ten places for a document, eight for a source type.
MAX_OF_DOCUMENT, MAX_OF_TYPE = 5, 8


@pytest.fixture
def reader(employee):
    """Return the employee as an admin: other users see rounded scores, which may order near ties differently."""
    User.objects.filter(pk=employee.pk).update(is_staff=True)
    employee.refresh_from_db()
    assert employee.is_admin
    return employee


@pytest.fixture
def ask(reader):
    """Return a function that asks the API, explained."""
    secret = ApiKey.issue(user=reader, name="test")[1]

    def send(question):
        headers = {"Authorization": f"Bearer {secret}"}
        body = {"query": question, "explain": True, "preset": "consolidated"}
        return Client().post("/api/v1/search", body, content_type="application/json", headers=headers).json()["hits"]

    return send


@pytest.fixture
def look(reader):
    """Return a function that reads (document, total, sum of the parts, sentence) of each hit off the page."""
    client = Client()
    client.force_login(reader)

    def read(question):
        return [_shown(hit) for hit in opened_hits(client, {"q": question, "preset": "consolidated"})]

    return read


def _shown(hit):
    amounts = map(float, hit.xpath(".//dd[@class='ledger-value']/data/@value"))
    link = hit.xpath("string(.//p[@class='ledger-open']/a/@href)")
    total = hit.xpath("string(.//span[@class='ledger-total']/text())").strip()
    return link, total, math.fsum(amounts), hit.xpath("string(.//p[@class='ledger-verdict'])").strip()


def compared(hit):
    """Return a hit's score on the unit scale with its boost."""
    share = 1 / (1 + math.exp(-hit["score"])) if hit["score_type"] == "logit" else hit["score"]
    return share + hit["explain"]["signals"]["precedence"]


def in_final_order(hits):
    """Sort as the documentation says: by score and boost, then so that the first places are shared."""
    canonical = shipped("report").canonical
    waiting = sorted(hits, key=lambda it: (-compared(it), it["explain"]["signals"]["merit_rank"]))
    placed, documents, types = [], Counter(), Counter()
    while waiting:
        own = [it for it in waiting if documents[it["document_id"]] < MAX_OF_DOCUMENT]
        fair = [it for it in own if types[canonical(it["source_type"])] < MAX_OF_TYPE]
        chosen = (fair or own or waiting)[0]
        waiting.remove(chosen)
        placed.append(chosen)
        documents[chosen["document_id"]] += 1
        types[canonical(chosen["source_type"])] += 1
    return placed


@pytest.mark.parametrize("reranker", [None, VowelReranker()], ids=["meaning and words", "reranked"])
def test_the_order_follows_from_what_is_told_of_each_hit(look, ask, monkeypatch, reranker):
    monkeypatch.setattr(runtime, "reranker", lambda: reranker)
    by_precedence = 0
    for question in QUESTIONS:
        shown, answered = look(question), ask(question)
        assert 1 < len(answered) <= KEPT
        assert [hit["rank"] for hit in in_final_order(answered)] == [hit["rank"] for hit in answered]
        assert all(sum(it["explain"]["contributions"].values()) == pytest.approx(it["score"]) for it in answered)
        assert [link.split("/documents/")[1][:36] for link, *_ in shown] == [it["document_id"] for it in answered]
        assert [total for _, total, _, _ in shown] == [f"{it['score']:.3f}" for it in answered]
        assert [parts for _, _, parts, _ in shown] == pytest.approx([it["score"] for it in answered])
        sentences = [sentence for *_, sentence in shown]
        for (first, second), sentence in zip(pairwise(answered), sentences, strict=False):
            is_led = (
                compared(first) - first["explain"]["signals"]["precedence"]
                < compared(second) - (second["explain"]["signals"]["precedence"])
            )
            is_shared = first["explain"]["signals"]["merit_rank"] > second["explain"]["signals"]["merit_rank"]
            assert ("on precedence" in sentence) == (is_led and not is_shared)
            assert ("had its share" in sentence) == is_shared
            by_precedence += is_led
    assert reranker is None or by_precedence >= 1
