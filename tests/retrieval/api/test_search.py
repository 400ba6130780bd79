"""POST /api/v1/search."""

import uuid
from types import SimpleNamespace

import pytest

from retrieval.api.shape import explanation
from retrieval.engine.state import Drop, DropReason, Span
from retrieval.engine.types import ChunkId
from retrieval.models import Chunk, Document, SearchRecord

PATH = "/api/v1/search"


def test_it_works(world, post):
    answer = post(PATH, {"query": "rollback staging database"}, world.key("bob")).json()
    hit = answer["hits"][0]
    chunk = Chunk.objects.get(text__contains="deployctl")
    assert hit["rank"] == 1
    assert hit["chunk_id"] == str(chunk)
    assert hit["document_id"] == str(chunk.document_id)
    assert (hit["title"], hit["heading_path"]) == ("Rolling back", chunk.heading_path)
    assert hit["text"] == chunk.text
    assert hit["url"] == f"http://testserver/documents/{chunk.document_id}/#chunk-{chunk.ordinal}"
    assert hit["source"] == {
        "connection": "runbooks",
        "name": "Runbooks",
        "compartment": "Engineering",
        "sensitivity": "internal",
        "trust": "authoritative",
    }
    assert hit["pages"] is None
    assert hit["score_type"] == "blend"
    assert "explain" not in hit
    assert "explain" not in answer


def test_a_hit_names_its_document_as_its_source_does(world, post):
    Document.objects.update(metadata={"author": "Ada", "year": 2025})
    for hit in post(PATH, {"query": "rollback staging database"}, world.key("bob")).json()["hits"]:
        document = Document.objects.get(pk=hit["document_id"])
        assert hit["external_id"] == document.external_id
        assert hit["uri"] == document.uri
        assert hit["position"] == int(hit["chunk_id"].rpartition(":")[2])
        assert hit["metadata"] == {"author": "Ada", "year": "2025"}


def test_hits_are_grouped_by_document_on_request(world, post):
    answer = post(PATH, {"query": "rollback", "group_by": "document"}, world.key("alice")).json()
    by_rank = {hit["rank"]: hit for hit in answer["hits"]}
    assert sorted(rank for group in answer["groups"] for rank in group["ranks"]) == sorted(by_rank)
    assert [group["ranks"][0] for group in answer["groups"]] == sorted(group["ranks"][0] for group in answer["groups"])
    for group in answer["groups"]:
        best = by_rank[group["ranks"][0]]
        assert {by_rank[rank]["document_id"] for rank in group["ranks"]} == {group["document_id"]}
        assert (group["score"], group["title"], group["source"]) == (best["score"], best["title"], best["source"])
        assert group["url"].endswith(f"/documents/{group['document_id']}/")
    assert len({group["document_id"] for group in answer["groups"]}) == len(answer["groups"])
    assert "groups" not in post(PATH, {"query": "rollback"}, world.key("alice")).json()
    assert post(PATH, {"query": "rollback", "group_by": "page"}, world.key("alice")).status_code == 422


def test_ranks_count_from_one_and_scores_fall(world, post):
    hits = post(PATH, {"query": "rollback"}, world.key("alice")).json()["hits"]
    assert [hit["rank"] for hit in hits] == list(range(1, len(hits) + 1))
    assert len(hits) > 1


def test_passages_name_their_chunks(world, post):
    answer = post(PATH, {"query": "rollback"}, world.key("alice")).json()
    chunks = {hit["chunk_id"] for hit in answer["hits"]}
    assert [passage["number"] for passage in answer["passages"]] == list(range(1, len(answer["passages"]) + 1))
    assert {passage["chunk_id"] for passage in answer["passages"]} <= chunks
    assert answer["passages"][0]["header"].startswith("### [1] ")


def test_the_trace_is_stored_under_its_id(world, post):
    answer = post(PATH, {"query": "rollback"}, world.key("bob")).json()
    record = SearchRecord.objects.get(pk=answer["trace_id"])
    assert (record.user, record.hit_count) == (world.bob, len(answer["hits"]))
    assert record.key is not None


def test_top_k_limits_the_hits(world, post):
    assert len(post(PATH, {"query": "rollback", "top_k": 1}, world.key("alice")).json()["hits"]) == 1


@pytest.mark.parametrize(
    ("scope", "expected"),
    [
        ({}, {"runbooks", "vault", "ledger"}),
        ({"include": []}, {"runbooks", "vault", "ledger"}),
        ({"include": ["ledger", "vault"]}, {"ledger", "vault"}),
        ({"exclude": ["ledger"]}, {"runbooks", "vault"}),
        ({"include": ["ledger", "vault"], "exclude": ["vault"]}, {"ledger"}),
        ({"include": ["vault"], "exclude": ["vault"]}, set()),
    ],
)
def test_a_request_narrows_its_scope(world, post, scope, expected):
    hits = post(PATH, {"query": "rollback", "scope": scope}, world.key("alice")).json()["hits"]
    assert {hit["source"]["connection"] for hit in hits} == expected


def test_an_explanation_has_the_ledger_and_the_spans(world, post):
    answer = post(PATH, {"query": "rollback staging", "explain": True}, world.key("bob")).json()
    ledger = answer["hits"][0]["explain"]
    assert sum(ledger["contributions"].values()) == pytest.approx(answer["hits"][0]["score"])
    assert {match["lexeme"] for match in ledger["matches"]} == {"rollback", "stage"}
    assert set(ledger["ranks"]) <= {"dense", "fulltext"}
    spans = {span["stage"]: span for span in answer["explain"]["spans"]}
    assert {"analyze", "dense", "fulltext", "fuse", "blend", "assemble"} <= set(spans)
    assert spans["dense"]["parent"] == "legs"
    assert answer["timings"]["stages"].keys() == spans.keys()


def test_drops_are_told_by_reason_and_chunk_alone(world, post):
    body = {"query": "rollback", "explain": True, "top_k": 1}
    spans = post(PATH, body, world.key("alice")).json()["explain"]["spans"]
    drops = [drop for span in spans for drop in span["drops"]]
    assert drops
    assert all(drop.keys() == {"chunk_id", "reason"} for drop in drops)


@pytest.mark.parametrize("reason", [DropReason.ACCESS, DropReason.STALE])
def test_a_chunk_that_may_be_out_of_scope_is_not_named_among_the_drops(reason):
    drops = (Drop(ChunkId(uuid.uuid4(), 0), reason),)
    (span,) = explanation(SimpleNamespace(trace=(Span("complete", 0.1, 1, 0, drops=drops),))).spans
    assert span.drops == []


def test_an_admin_is_told_of_excluded_connections(world, post):
    body = {"query": "rollback", "explain": True, "scope": {"exclude": ["ledger"]}}
    explain = post(PATH, body, world.key("alice")).json()["explain"]
    assert explain["excluded"] == [{"connection": "ledger", "name": "Ledger", "reason": "scope_excluded"}]


def test_it_answers_with_nothing_for_charlie(world, post):
    answer = post(PATH, {"query": "rollback", "explain": True}, world.key("charlie")).json()
    assert (answer["hits"], answer["passages"]) == ([], [])


@pytest.mark.parametrize("mode", ["hybrid", "dense", "fulltext"])
def test_a_mode_runs_all_legs_or_one(world, post, mode):
    answer = post(PATH, {"query": "rollback", "mode": mode, "explain": True}, world.key("bob")).json()
    legs = {leg for hit in answer["hits"] for leg in hit["explain"]["ranks"]}
    assert answer["mode"] == mode
    assert legs == ({"dense", "fulltext"} if mode == "hybrid" else {mode})


def test_an_unknown_mode_names_those_that_there_are(world, post):
    response = post(PATH, {"query": "rollback", "mode": "graph"}, world.key("bob"))
    assert response.status_code == 422
    error = response.json()["error"]
    assert error["code"] == "unknown_mode"
    assert "hybrid, dense, fulltext" in error["message"]
