"""The Explorer's numbers are the engine's: the order of the hits follows from the ledgers that the page shows."""

import json
import math
import re
from dataclasses import dataclass
from itertools import pairwise

import pytest
from django.conf import settings
from django.test import Client
from django.utils import timezone
from lxml import html

from corecube.models import ApiKey, User
from corecube.scope import TrustLevel
from retrieval.engine.types import ScoreType
from retrieval.ingest.samples import Company, add_samples
from retrieval.search import runtime
from tests.kept_rows import KeptRows, Stand

QUESTIONS = (
    "How did the ammonia leak at Tallow Quay in March 2026 happen?",
    "larder database failover",
    "GAN-0x2F",
    "How much may a hotel night cost?",
    "Which rules hold for visitors and contractors?",
    "Which wage increase does the budget for 2027 assume?",
    "What does a late arrival cost a haulier today?",
    "energy hedging",
)
NOW = timezone.now()


class VowelReranker:
    """Scores a text by the share of e in it, as a logit."""

    name = "share of e"
    score_type = ScoreType.LOGIT
    blend_weight = None
    problem = ""

    def score(self, query, texts, *, timeout_seconds):  # noqa: ARG002 -- as every reranker has it
        return [20 * text.count("e") / len(text) - 2 for text in texts]


@dataclass(frozen=True)
class Shown:
    """A hit as the page shows it."""

    #: (document id, ordinal), as the link to its passage has them.
    chunk: tuple[str, int]
    #: The total as written, and as the sum of the contributions.
    written: str
    score: float
    score_type: str
    contributions: tuple[float, ...]
    trust: TrustLevel
    tolerance: float
    #: Stands in the place of a copy, which may have scored higher.
    is_preferred_copy: bool

    @classmethod
    def read(cls, hit):
        rows = {_text(row, "dt"): row for row in hit.xpath(".//div[@class='ledger-row']")}
        amounts = tuple(float(value) for value in hit.xpath(".//dd[@class='ledger-value']/data/@value"))
        document, ordinal = re.search(r"/documents/([0-9a-f-]{36})/.*#chunk-(\d+)$", _link(hit)).groups()
        return cls(
            (document, int(ordinal)),
            hit.xpath("string(.//span[@class='ledger-total']/text())").strip(),
            math.fsum(amounts),
            hit.xpath("string(.//span[@class='ledger-total']/span)"),
            amounts,
            TrustLevel[_text(rows["Trust"], "dd[1]").upper()],
            float(re.search(r"within ([\d.]+)", _text(rows["Trust"], "dd[2]")).group(1)),
            "Copies" in rows,
        )

    @property
    def on_unit_scale(self):
        return 1 / (1 + math.exp(-self.score)) if self.score_type == "logit" else self.score


def _text(node, path):
    return node.xpath(f"string({path})").strip()


def _link(hit):
    return hit.xpath("string(.//p[@class='ledger-open']/a/@href)")


def by_score(hit):
    return -hit.score, hit.chunk


def in_final_order(hits):
    """Sort as the documentation says: by score, the lower chunk among equals, the more trusted among near-ties."""
    ordered, group = [], []
    for hit in sorted(hits, key=by_score):
        if group and group[0].on_unit_scale - hit.on_unit_scale > hit.tolerance:
            ordered += sorted(group, key=lambda it: (-it.trust, by_score(it)))
            group = []
        group.append(hit)
    return [*ordered, *sorted(group, key=lambda it: (-it.trust, by_score(it)))]


def may_precede(one, other):
    """Say whether one may stand before the other: it scores no less, is as good and more trusted, or is a copy."""
    is_tied = abs(one.on_unit_scale - other.on_unit_scale) <= one.tolerance
    return by_score(one) < by_score(other) or (is_tied and one.trust > other.trust) or one.is_preferred_copy


#: The sample company's rows, once a test has taken it in.
_company = []


@pytest.fixture
def reader(db, monkeypatch):
    """Return one of the sample company, for whom no time passes: freshness would differ in its last digits."""
    if _company:
        _company[0].put_back()
    else:
        before = Stand.now()
        add_samples(Company.read(settings.CORECUBE_SAMPLES_DIR))
        _company.append(KeptRows.since(before))
    monkeypatch.setattr(timezone, "now", lambda: NOW)
    return User.objects.get(username="wilhelmina")


def opened_hits(client, query):
    """Return the hits of a page, each with its score breakdown, which is drawn when it is opened."""
    page = html.fromstring(client.get("/", query).content)
    (trace,) = page.xpath("//ol[@data-hits]/@hx-headers")
    for ledger in page.xpath("//section[@hx-get][starts-with(@id, 'ledger-')]"):
        headers = {**json.loads(trace), "HX-Request": "true", "HX-Target": ledger.get("id")}
        ledger[:] = html.fragments_fromstring(client.get(f"/{ledger.get('hx-get')}", headers=headers).content.decode())
    return page.xpath("//li[@class='hit']")


@pytest.fixture
def look(reader):
    """Return a function that reads the ledgers of a question off the page, in the order shown."""
    client = Client()
    client.force_login(reader)

    def read(question):
        return [Shown.read(hit) for hit in opened_hits(client, {"q": question})]

    return read


@pytest.fixture
def ask(reader):
    """Return a function that asks the API the same, explained."""
    secret = ApiKey.issue(user=reader, name="test")[1]

    def send(question):
        headers = {"Authorization": f"Bearer {secret}"}
        body = {"query": question, "explain": True}
        return Client().post("/api/v1/search", body, content_type="application/json", headers=headers).json()["hits"]

    return send


@pytest.mark.parametrize("reranker", [None, VowelReranker()], ids=["blended", "reranked"])
def test_the_order_shown_follows_from_the_ledgers_shown(look, ask, monkeypatch, reranker):
    monkeypatch.setattr(runtime, "reranker", lambda: reranker)
    strict, by_trust = 0, 0
    for question in QUESTIONS:
        shown, answered = look(question), ask(question)
        assert len(shown) > 1
        assert [f"{hit.score:.3f}" for hit in shown] == [hit.written for hit in shown]
        assert all(may_precede(one, other) for one, other in pairwise(shown))
        if not any(hit.is_preferred_copy for hit in shown):
            strict += 1
            assert in_final_order(shown) == shown
            by_trust += shown != sorted(shown, key=by_score)
        assert [f"{document}:{ordinal}" for document, ordinal in (hit.chunk for hit in shown)] == [
            hit["chunk_id"] for hit in answered
        ]
        assert [hit.score for hit in shown] == [hit["score"] for hit in answered]
        assert [hit.contributions for hit in shown] == [
            tuple(hit["explain"]["contributions"].values()) for hit in answered
        ]
    assert strict >= 3
    assert by_trust >= 1
