"""A request's filter stands beside the scope in every leg, and again where the pool is read."""

import itertools
from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection as database

from corecube.access import scope_for
from retrieval.answers.memory.items import Item, remember
from retrieval.encoders.sparse_encoder import SparseVector
from retrieval.engine.state import RequestFilter
from retrieval.engine.types import MemoryType, Term
from retrieval.index import store
from retrieval.index.encodings import SparseLook, sparse_exact, sparse_hnsw
from retrieval.index.filters import holds_any, known_projects
from retrieval.models import Chunk, Document
from tests.retrieval.index.conftest import rebuild

OLD, NEW = datetime(2020, 1, 1, tzinfo=UTC), datetime(2026, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)
#: The query's sparse vector, and every chunk's.
SPARSE, MODEL = SparseVector(8, (1, 3), (0.5, 1.0)), 4711
SEARCH = store.TextSearch((0.1, 0.5, 0.7, 1.0), 0.2)


@pytest.fixture(autouse=True)
def fresh_hnsw(index):
    """Rebuild the HNSW index: the rows of all earlier tests are still in it as deleted ones, which hide others."""
    rebuild(index)


@pytest.fixture
def dated(world, bob):
    """Make all of the world old but for one document of Bob's and one that he may not see."""
    Document.objects.update(modified_at=OLD)
    new = Document.objects.filter(external_id="queues.txt", connection=world.runbooks)
    new.update(modified_at=NEW)
    Document.objects.filter(connection=world.vault).update(modified_at=NEW)
    return new.get()


def all_ways(scope, index, vector, kept):
    terms = [Term("queue", 1, 1.0), Term("rollback", 1, 1.0)]
    near = {"scope": scope, "index": index, "depth": 50, "timeout_seconds": 5, "request_filter": kept}
    exact = store.dense_exact(vector, **near)
    words = {"terms": terms, "scope": scope, "search": SEARCH, "depth": 50, "limit": 50, "timeout_seconds": 5}
    everything = store.dense_exact(vector, **near | {"request_filter": RequestFilter()})
    return {
        "exact": exact,
        "hnsw": store.dense_hnsw(vector, ef_search=100, **near),
        "fulltext": store.fulltext("'queue' | 'rollback'", request_filter=kept, **words).ranking,
        "capped": store.fulltext("'queue' | 'rollback'", share=1.0, request_filter=kept, **words).ranking,
        **sparse_ways(scope, kept),
        "complete": store.complete(
            everything, vector=vector, index=index, terms=terms, scope=scope, search=SEARCH, request_filter=kept
        ),
    }


def sparse_ways(scope, kept):
    look = SparseLook(SPARSE, scope=scope, model_key=MODEL, depth=50, timeout_seconds=5, request_filter=kept)
    return {"sparse": sparse_exact(look), "sparse_hnsw": sparse_hnsw(look, ef_search=100)}


@pytest.fixture(autouse=True)
def sparse_vectors(world):
    """Give every chunk a sparse vector that the query's is near to, and an HNSW index over them."""
    with database.cursor() as cursor:
        cursor.execute(
            "INSERT INTO retrieval_sparseembedding (document_id, ordinal, connection_id, model_key, vector)"
            " SELECT document_id, ordinal, connection_id, %s, %s::sparsevec FROM retrieval_chunk",
            [MODEL, SPARSE.to_text()],
        )
        cursor.execute(
            "CREATE INDEX sparse_of_the_test ON retrieval_sparseembedding"
            f" USING hnsw ((vector::sparsevec({SPARSE.dim})) sparsevec_ip_ops) WHERE model_key = {MODEL}"
        )


@pytest.fixture
def mixed(world):
    """Make of the world's chunks different kinds: types of documents, kinds of content, qualities."""
    for number, document in enumerate(Document.objects.order_by("pk")):
        Document.objects.filter(pk=document.pk).update(source_type=("excel", "csv", "pdf")[number % 3])
    for number, (document, ordinal) in enumerate(Chunk.objects.order_by("pk").values_list("document_id", "ordinal")):
        chunk = Chunk.objects.filter(document_id=document, ordinal=ordinal)
        chunk.update(hints=[["table"], ["list", "table"], []][number % 3], quality=(0.1, 0.25, 1.0, 0.9)[number % 4])


def stored(scope, kept):
    """Return what a filter leaves of a scope, as it reads."""
    chunks = Chunk.objects.filter(connection_id__in=scope.connection_ids, quality__gte=kept.min_quality)
    types = dict(Document.objects.values_list("pk", "source_type"))
    return {
        (chunk.document_id, chunk.ordinal)
        for chunk in chunks
        if (not kept.documents or chunk.document_id in kept.documents)
        and (not kept.source_types or types[chunk.document_id] in kept.source_types)
        and (not kept.hint or kept.hint in chunk.hints)
    }


@pytest.mark.parametrize("who", ["alice", "bob"])
def test_every_way_leaves_the_same_chunks(mixed, request, who, index, unit):
    scope = request.getfixturevalue(who)
    types, hints = [(), ("excel",), ("csv", "pdf")], ["", "table", "list", "steps"]
    for source_types, hint, quality in itertools.product(types, hints, [0.0, 0.25, 0.95]):
        kept = RequestFilter(source_types=frozenset(source_types), hint=hint, min_quality=quality)
        expected = stored(scope, kept)
        for way, ranking in all_ways(scope, index, unit(3)[0], kept).items():
            found = {tuple(hit.chunk_id) for hit in ranking}
            assert found <= expected if way in {"fulltext", "capped"} else found == expected, (way, kept)


def test_every_way_keeps_to_the_documents_named_within_the_scope(mixed, world, alice, bob, index, unit):
    hidden = Document.objects.get(connection=world.vault).pk
    own = Document.objects.get(external_id="queues.txt").pk
    kept = RequestFilter(documents=frozenset({hidden, own}))
    for way, ranking in all_ways(bob, index, unit(1)[0], kept).items():
        assert {hit.chunk_id.document_id for hit in ranking} == {own}, way
    everything = all_ways(alice, index, unit(1)[0], kept)["exact"]
    assert {hit.chunk_id.document_id for hit in everything} == {hidden, own}


def test_what_a_filter_says_of_documents_and_chunks_holds_together(mixed, world, alice, index, unit):
    document = Document.objects.get(external_id="rollback.md")
    type_and_time = {"source_types": frozenset({document.source_type}), "since": NEW - DAY}
    Document.objects.update(modified_at=OLD)
    Document.objects.filter(pk=document.pk).update(modified_at=NEW)
    kept = RequestFilter(documents=frozenset({document.pk}), hint="table", min_quality=0.05, **type_and_time)
    expected = {it for it in stored(alice, kept) if it[0] == document.pk}
    for way, ranking in all_ways(alice, index, unit(1)[0], kept).items():
        found = {tuple(hit.chunk_id) for hit in ranking}
        assert found <= expected if way in {"fulltext", "capped"} else found == expected, way


def test_every_way_keeps_to_a_time_within_the_scope(dated, bob, index, unit):
    found = all_ways(bob, index, unit(1)[0], RequestFilter(since=NEW - DAY))
    for way, ranking in found.items():
        assert {hit.chunk_id.document_id for hit in ranking} == {dated.pk}, way


def test_the_end_of_a_time_narrows_remembered_items_alone(dated, bob, index, unit):
    kept = RequestFilter(until=OLD - DAY)
    documents = {hit.chunk_id.document_id for hit in all_ways(bob, index, unit(1)[0], kept)["exact"]}
    assert documents == set(Document.objects.in_scope(bob).values_list("pk", flat=True))


def test_projects_types_and_times_narrow_remembered_items(world, index, unit):
    for text, kind, project, at in (
        ("Atlas runs.", "semantic", "atlas", OLD),
        ("Borealis waits.", "decision", "borealis", NEW),
        ("Oil every pump.", "procedural", "", NEW),
    ):
        remember(Item(text=text, kind=MemoryType(kind), project=project, at=at), principal=world.principal("charlie"))
    scope = scope_for(world.principal("charlie"))

    def left(**kept):
        return {hit.chunk.text for hit in all_ways(scope, index, unit(2)[0], RequestFilter(**kept))["complete"]}

    assert left(project="atlas") == {"Atlas runs.", "Oil every pump."}
    assert left(memory_types=frozenset({MemoryType.DECISION})) == {"Borealis waits."}
    assert left(until=OLD) == {"Atlas runs."}
    assert left(since=NEW, project="atlas") == {"Oil every pump."}
    assert sorted(known_projects(scope, timeout_seconds=5)) == ["atlas", "borealis"]


def test_whether_anything_is_left_is_asked_of_the_scope(dated, world, bob, alice):
    late = RequestFilter(since=NEW + DAY)
    Document.objects.filter(connection=world.vault).update(modified_at=NEW + 2 * DAY)
    assert not holds_any(late, scope=bob, timeout_seconds=5)
    assert holds_any(late, scope=alice, timeout_seconds=5)


def test_nobody_elses_projects_are_known(world, alice):
    remember(Item(text="Zebra runs.", project="zebra"), principal=world.principal("charlie"))
    assert known_projects(alice, timeout_seconds=5) == []
