"""POST /api/dify/retrieval as Dify uses it."""

import pytest

from corecube.models import ApiKey
from retrieval.models import Document

PATH = "/api/dify/retrieval"
ASKED = {"knowledge_id": "all", "query": "rollback staging", "retrieval_setting": {"top_k": 2, "score_threshold": 0.0}}
AT_LEAST = {"name": "year", "comparison_operator": "≥"}


@pytest.fixture
def retrieve(post):
    return lambda secret, **more: post(PATH, ASKED | more, secret)


def test_records_are_as_dify_reads_them(world, retrieve):
    answer = retrieve(world.key("bob"))
    records = answer.json()["records"]
    assert answer.status_code == 200
    assert 1 <= len(records) <= 2
    first = records[0]
    assert first.keys() == {"content", "score", "title", "metadata"}
    assert "deployctl" in first["content"]
    assert 0 < first["score"] <= 1
    assert first["metadata"]["connection"] == "runbooks"
    assert all(isinstance(value, str) for value in first["metadata"].values())
    assert [it["score"] for it in records] == sorted((it["score"] for it in records), reverse=True)


def test_a_knowledge_base_is_a_connection(world, retrieve):
    secret = world.key("alice")
    found = {it["metadata"]["connection"] for it in retrieve(secret, knowledge_id="ledger").json()["records"]}
    assert found == {"ledger"}
    whole = retrieve(secret, retrieval_setting={"top_k": 10, "score_threshold": 0}).json()["records"]
    assert {it["metadata"]["connection"] for it in whole} == {"runbooks", "vault", "ledger"}


def test_what_scores_too_low_is_left_out(world, retrieve):
    secret = world.key("bob")
    records = retrieve(secret, retrieval_setting={"top_k": 10}).json()["records"]
    limit = (records[0]["score"] + records[-1]["score"]) / 2
    kept = retrieve(secret, retrieval_setting={"top_k": 10, "score_threshold": limit}).json()["records"]
    assert [it["content"] for it in kept] == [it["content"] for it in records if it["score"] >= limit]
    assert 0 < len(kept) < len(records)


def test_conditions_on_metadata(world, retrieve):
    Document.objects.filter(external_id="queues.txt").update(metadata={"author": "Maya", "year": "2024"})
    secret = world.key("bob")

    def titles(operator, *conditions):
        given = [dict(zip(("name", "comparison_operator", "value"), it, strict=False)) for it in conditions]
        answer = retrieve(secret, metadata_condition={"logical_operator": operator, "conditions": given})
        return {it["metadata"].get("author", "") for it in answer.json()["records"]}

    assert titles("and", ("author", "is", "maya"), ("year", "≥", 2024)) == {"Maya"}
    assert titles("and", ("author", "is", "maya"), ("year", ">", 2024)) == set()
    assert titles("or", (["writer", "author"], "is", "maya"), ("connection", "is", "none")) == {"Maya"}
    assert titles("and", ("author", "empty")) == {""}


@pytest.mark.parametrize("knowledge", ["vault", "ledger", "nothing", "", "\0"])
def test_what_the_key_does_not_see_is_no_knowledge(world, retrieve, knowledge):
    answer = retrieve(world.key("bob"), knowledge_id=knowledge)
    assert (answer.status_code, answer.json()) == (
        404,
        {"error_code": 2001, "error_msg": "The knowledge does not exist."},
    )


@pytest.mark.parametrize(
    ("header", "code"),
    [(None, 1001), ("Basic abc", 1001), ("cc_x", 1001), ("Bearer cc_wrong", 1002), ("Bearer ", 1002)],
)
def test_a_key_is_needed(world, client, header, code):
    headers = {} if header is None else {"Authorization": header}
    answer = client.post(PATH, ASKED, content_type="application/json", headers=headers)
    assert (answer.status_code, answer.json()["error_code"]) == (403, code)
    assert answer.json().keys() == {"error_code", "error_msg"}


@pytest.mark.parametrize(
    ("more", "status"),
    [
        ({"query": ""}, 422),
        ({"query": "x" * 40_000}, 422),
        ({"retrieval_setting": {"top_k": 0}}, 422),
        ({"retrieval_setting": {"score_threshold": 2}}, 422),
        ({"metadata_condition": {"conditions": [{"name": "a", "comparison_operator": "like"}]}}, 422),
        ({"metadata_condition": {"conditions": [{**AT_LEAST, "value": float("inf")}]}}, 422),
        ({"knowledge_id": None}, 422),
    ],
)
def test_a_bad_request_is_refused_in_difys_shape(world, retrieve, more, status):
    answer = retrieve(world.key("bob"), **more)
    assert (answer.status_code, answer.json()["error_code"]) == (status, status)
    assert answer.json()["error_msg"]


def test_broken_json_is_refused_in_difys_shape(world, post):
    assert post(PATH, "{", world.key("bob")).json() == {"error_code": 400, "error_msg": "The body is not valid JSON."}


def test_a_key_has_its_rate_here_too(world, retrieve):
    key, secret = ApiKey.issue(user=world.bob, name="dify")
    ApiKey.objects.filter(pk=key.pk).update(requests_per_minute=1)
    assert retrieve(secret).status_code == 200
    refused = retrieve(secret)
    assert (refused.status_code, refused.json()["error_code"]) == (429, 429)
    assert int(refused.headers["Retry-After"]) >= 1
