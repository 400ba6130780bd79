from corecube.access import ScopeRequest, scope_for
from retrieval.engine.types import ChunkId, Hit, ScoreType, Term
from retrieval.index.store import read_facts
from retrieval.models import Chunk


def bare(chunk):
    return Hit(ChunkId(chunk.document_id, chunk.ordinal), 0.5, ScoreType.COSINE)


def test_hits_get_their_texts_and_what_they_match_in_their_order(world):
    hits = [bare(chunk) for chunk in Chunk.objects.filter(connection_id=world.runbooks.pk).order_by("-document_id")]
    read = read_facts(tuple(hits), scope=scope_for(world.principal("bob")), terms=[Term("rollback", 1, 2.0)])
    assert [hit.chunk_id for hit in read] == [hit.chunk_id for hit in hits]
    assert any(match.lexeme == "rollback" for hit in read for match in hit.matches)
    assert all(hit.chunk.text and hit.score == 0.5 and "cosine" not in hit.signals for hit in read)


def test_what_is_out_of_scope_is_left_out(world):
    hits = tuple(bare(chunk) for chunk in Chunk.objects.all())
    read = read_facts(hits, scope=scope_for(world.principal("bob")))
    assert {hit.chunk.connection_id for hit in read} == {world.runbooks.pk}
    narrowed = scope_for(world.principal("bob"), ScopeRequest(exclude=("runbooks",)))
    assert read_facts(hits, scope=narrowed) == ()


def test_what_is_gone_is_left_out_and_nothing_asks_nothing(world, django_assert_num_queries):
    scope = scope_for(world.principal("alice"))
    chunk = Chunk.objects.first()
    gone = Hit(ChunkId(chunk.document_id, 9999), 0.5, ScoreType.COSINE)
    assert read_facts((gone,), scope=scope) == ()
    with django_assert_num_queries(0):
        assert read_facts((), scope=scope) == ()
