import uuid

import pytest

from corecube.models import ApiKey
from retrieval.models import Chunk, Judgment, SearchRecord
from retrieval.records.stored_trace import chunk_id_of


@pytest.fixture
def asked(world, ask):
    """Return Bob's key and the trace of what he asked with it."""
    _, secret = ApiKey.issue(user=world.bob, name="bot")
    answer = ask("Run deployctl rollback before touching the staging database?", secret).json()
    return secret, answer["corecube"]["trace_id"]


def test_a_thumb_is_kept_with_the_search(asked, post):
    secret, trace = asked
    assert post("/api/v1/feedback", {"trace_id": trace, "rating": -1}, secret).status_code == 204
    assert SearchRecord.objects.get().feedback == -1
    post("/api/v1/feedback", {"trace_id": trace, "rating": 1}, secret)
    assert SearchRecord.objects.get().feedback == 1


def test_a_thumb_on_a_citation_judges_its_passage(asked, post, world):
    secret, trace = asked
    assert post("/api/v1/feedback", {"trace_id": trace, "rating": 1, "citation": 1}, secret).status_code == 204
    judgment = Judgment.objects.get()
    assert (judgment.grade, judgment.by) == (2, world.bob)
    assert judgment.query == "run deployctl rollback before touching the staging database?"
    assert SearchRecord.objects.get().feedback is None
    post("/api/v1/feedback", {"trace_id": trace, "rating": -1, "citation": 1}, secret)
    assert Judgment.objects.get().grade == 0


@pytest.mark.parametrize("name", ["bob", "alice", "charlie"])
def test_only_who_asked_may_rate(asked, post, world, name):
    _, trace = asked
    refused = post("/api/v1/feedback", {"trace_id": trace, "rating": -1}, world.key(name))
    assert (refused.status_code, refused.json()["error"]["code"]) == (404, "unknown_trace")
    unknown = post("/api/v1/feedback", {"trace_id": str(uuid.uuid4()), "rating": -1}, world.key(name))
    assert unknown.json() == refused.json()
    assert SearchRecord.objects.get().feedback is None


def test_the_signed_in_asker_may_rate_without_a_key(world, client):
    client.force_login(world.bob)
    client.get("/", {"q": "rollback"})
    trace = SearchRecord.objects.get().pk
    sent = client.post("/api/v1/feedback", {"trace_id": str(trace), "rating": 1}, content_type="application/json")
    assert sent.status_code == 204


def test_a_passage_that_left_the_scope_is_no_longer_judged(asked, post, world):
    secret, trace = asked
    world.runbooks.sensitivity = 3
    world.runbooks.save()
    refused = post("/api/v1/feedback", {"trace_id": trace, "rating": 1, "citation": 1}, secret)
    assert (refused.status_code, refused.json()["error"]["code"]) == (404, "unknown_passage")
    assert not Judgment.objects.exists()


def test_a_passage_that_was_not_cited_and_a_text_that_was_not_kept_are_refused(asked, post):
    secret, trace = asked
    assert post("/api/v1/feedback", {"trace_id": trace, "rating": 1, "citation": 99}, secret).status_code == 422
    SearchRecord.objects.update(query="")
    assert post("/api/v1/feedback", {"trace_id": trace, "rating": 1, "citation": 1}, secret).status_code == 422


@pytest.mark.parametrize(
    "body", [{"rating": 1}, {"trace_id": "x", "rating": 1}, {"trace_id": str(uuid.UUID(int=1)), "rating": 0}]
)
def test_what_is_no_rating_is_refused(world, post, body):
    assert post("/api/v1/feedback", body, world.key("bob")).status_code == 422


def test_a_thumb_is_for_the_text_that_was_read(asked, post, world):
    secret, trace = asked
    rate = {"trace_id": trace, "rating": 1, "citation": 1}
    passage = SearchRecord.objects.get().trace["passages"][0]["chunk"]
    document_id, ordinal = chunk_id_of(passage)
    chunk = Chunk.objects.filter(document_id=document_id, ordinal=ordinal)
    read = chunk.get().content_hash
    chunk.update(content_hash="0" * len(read))
    assert post("/api/v1/feedback", rate, secret).status_code == 404
    chunk.update(content_hash=read, ordinal=ordinal + 7)
    assert post("/api/v1/feedback", rate, secret).status_code == 204
    assert Judgment.objects.get().content_hash == read
