"""What the record of a search keeps, whoever asks it and wherever."""

import uuid

import pytest

from corecube.access import Principal, ScopeRequest
from corecube.models import User
from retrieval.engine.state import Drop, DropReason, Note, Span
from retrieval.engine.types import ChunkId
from retrieval.models import EmbeddingIndex, SearchRecord
from retrieval.records.stored_trace import hits_of, ranking_of, spans_of
from retrieval.search.record import span_json
from retrieval.search.request import SearchRequest
from retrieval.search.service import search

QUESTION = "how to roll back staging"


def record():
    return SearchRecord.objects.get()


def test_a_record_keeps_what_a_replay_needs(world):
    asked = SearchRequest(
        text=QUESTION, top_k=3, narrowing=ScopeRequest(exclude=("ledger",)), overrides={"blend.dense": 0.5}
    )
    outcome = search(asked, principal=world.principal("alice"))
    kept = record()
    assert (kept.id, kept.query, kept.top_k, kept.surface) == (outcome.id, QUESTION, 3, "command")
    assert kept.trace["narrowing"] == {"include": [], "exclude": ["ledger"]}
    assert kept.trace["mode"] == "hybrid"
    assert kept.trace["overrides"] == kept.trace["values"] == {"blend.dense": 0.5}
    assert kept.trace["index"] == EmbeddingIndex.objects.get().pk
    assert kept.transaction_id > 0
    assert kept.verdict == outcome.state.answerability.verdict
    assert kept.confidence == outcome.state.answerability.confidence


def test_a_stored_trace_reads_back_as_it_was(world):
    outcome = search(SearchRequest(text=QUESTION, top_k=2), principal=world.principal("alice"))
    trace = record().trace
    assert [hit.chunk_id for hit in hits_of(trace)] == [hit.chunk_id for hit in outcome.hits]
    assert [dict(hit.contributions) for hit in hits_of(trace)] == [dict(hit.contributions) for hit in outcome.hits]
    found = [(hit.chunk_id, hit.chunk.content_hash) for hit in outcome.state.hits]
    assert list(ranking_of(trace)) == found[:20]
    assert len(found) > 2
    stages = [(span.stage, span.parent, span.hits_out, span.drops) for span in spans_of(trace)]
    assert stages == [(span.stage, span.parent, span.hits_out, span.drops) for span in outcome.trace]


@pytest.mark.parametrize("reason", DropReason)
def test_every_reason_reads_back(reason):
    drop = Drop(ChunkId(uuid.UUID(int=1), 2), reason, "rank 9, window 8")
    assert spans_of({"spans": [span_json(Span("quota", 0.1, 9, 8, drops=(drop,)))]})[0].drops == (drop,)


def test_what_this_release_cannot_mean_is_left_out_of_a_stored_trace():
    trace = {
        "spans": [
            {
                "stage": "new",
                "parent": "",
                "ms": 2.0,
                "hits_in": 1,
                "hits_out": 0,
                "notes": [],
                "drops": [["6f0c1f52-0c5b-5a54-9a0e-1d9a1a0c7b11:0", "no_such_reason", ""]],
            }
        ],
        "hits": [{"chunk": "6f0c1f52-0c5b-5a54-9a0e-1d9a1a0c7b11:0", "score_type": "no_such_type", "score": 1}],
    }
    assert spans_of(trace)[0].drops == ()
    assert hits_of(trace) == ()
    assert spans_of({}) == hits_of({}) == ranking_of({}) == ()


@pytest.mark.parametrize("keeps", [True, False])
def test_the_text_is_kept_only_where_the_installation_keeps_it(world, settings, keeps):
    settings.CORECUBE_KEEP_QUERY_TEXT = keeps
    search(SearchRequest(text="zanzibar rollback"), principal=world.principal("alice"))
    kept = record()
    assert (kept.query == "zanzibar rollback") is keeps
    assert ("zanzibar" in str(kept.trace)) is keeps


def test_the_explorers_answer_tab_notes_a_refusal_too(world, client):
    client.force_login(world.bob)
    client.get("/", {"q": "who won the football cup in brazil", "tab": "answer", "answer": "1"})
    assert record().is_refused


def test_a_search_as_someone_else_is_the_admins(world):
    search(SearchRequest(text=QUESTION), principal=Principal(world.bob, actor=world.alice))
    kept = record()
    assert (kept.user, kept.actor, kept.for_another) == (world.bob, world.alice, True)
    records = SearchRecord.objects
    assert kept not in records.visible_to(world.bob)
    assert kept in records.visible_to(world.alice)
    assert kept in records.own(world.alice)
    assert kept not in records.own(world.bob)
    User.objects.filter(pk=world.alice.pk).delete()
    assert not records.visible_to(world.bob).exists()


def test_what_quotes_a_document_is_shown_and_not_kept():
    note = Note("spelling", "Read “Guuy” as “Guy of Tuscany”.", quotes=True)
    kept = span_json(Span("expand", 0.1, 0, 0, notes=(note, Note("expanded", "1 link."))))
    assert [(it["code"], it["text"]) for it in kept["notes"]] == [("spelling", ""), ("expanded", "1 link.")]
