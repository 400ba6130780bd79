"""How PostgreSQL runs the vector leg of `helix`: by the HNSW index, whatever the scope and the request's filter."""

from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from uuid import uuid4

import pytest
from django.db import connection as database
from django.utils import timezone

from retrieval.engine.state import RequestFilter
from retrieval.engine.types import MemoryType
from retrieval.index import store
from retrieval.models import Document
from retrieval.search import runtime
from retrieval.search.request import SearchRequest
from retrieval.search.service import search
from tests.retrieval.index.conftest import copy_embeddings
from tests.retrieval.index.test_plans import indexes, plan_of

NOW = timezone.now()
DECISIONS = RequestFilter(memory_types=frozenset({MemoryType.DECISION}))
FILTERS = {
    "the scope alone": RequestFilter(),
    "a memory type": DECISIONS,
    "a time": RequestFilter(since=NOW - timedelta(days=7), until=NOW + timedelta(days=1)),
    "both and a project": replace(DECISIONS, since=NOW - timedelta(days=7), project="atlas"),
}


@pytest.fixture
def remembered(world, index, unit):
    """Add 1,500 remembered items with random vectors to the runbooks, and a copy of each out of Bob's scope."""
    kinds = [MemoryType.DECISION, *[MemoryType.EPISODIC] * 19]
    vectors = unit(31, 1500)
    rows = []
    for connection in (world.runbooks, world.ledger):
        documents = Document.objects.bulk_create(
            Document(
                id=uuid4(),
                connection=connection,
                external_id=f"item {number}",
                source_type="text",
                byte_size=0,
                synced_at=NOW,
                metadata={"memory_kind": kinds[number % 20], "memory_project": ("atlas", "")[number % 40 == 0]},
            )
            for number in range(len(vectors))
        )
        rows += [(document.pk, 0, connection.pk, vector) for document, vector in zip(documents, vectors, strict=True)]
    copy_embeddings(index, rows)
    return vectors


@contextmanager
def statements_sent():
    """Keep what is sent to the database, with its parameters."""
    sent = []

    def keep(execute, sql, parameters, many, context):
        sent.append((sql, parameters))
        return execute(sql, parameters, many, context)

    with database.execute_wrapper(keep):
        yield sent


@pytest.mark.parametrize("kept", FILTERS.values(), ids=FILTERS)
def test_the_presets_own_statement_walks_the_hnsw_index(world, index, remembered, kept):
    request = SearchRequest(text="rollback", preset="helix", filter=kept, overrides={"dense.exact_below": 0})
    with statements_sent() as sent:
        search(request, principal=world.principal("bob"))
    [(sql, parameters), *_] = [it for it in sent if "nearest to a query vector, by the HNSW index" in it[0]]
    settings = {name: value for name, value in parameters.items() if f"set_config('{name}'" in sql}
    assert settings["hnsw.iterative_scan"] == "relaxed_order"
    assert parameters["scope"] == f"{{{world.runbooks.pk}}}"
    alone = {name: value for name, value in settings.items() if name != "statement_timeout"}
    plan = plan_of(sql.partition(";\n")[2], parameters, alone)
    assert f"retrieval_embedding_hnsw_{index.id}" in indexes(plan)
    (walk,) = [node for node in plan if node.get("Relation Name") == "retrieval_embedding"]
    assert walk["Node Type"] == "Index Scan"
    assert "<=>" in walk["Order By"]
    assert "connection_id" in walk["Filter"]
    assert ("SubPlan" in walk["Filter"]) == bool(kept)


def test_a_filter_costs_time_and_no_hits(bob, index, unit, remembered):
    given = {"scope": bob, "index": index, "depth": 40, "timeout_seconds": 5, "request_filter": DECISIONS}
    # Documents that nobody remembered are of no type, and stay.
    others = set(Document.objects.filter(metadata__memory_kind="episodic").values_list("pk", flat=True))
    for query in unit(32, 5):
        # One item in twenty is kept, so that the walk's first list of 40 holds two: it goes on.
        walked = store.dense_hnsw(query, ef_search=40, **given)
        nearest = {hit.chunk_id for hit in store.dense_exact(query, **given)}
        found = {hit.chunk_id for hit in walked}
        assert len(walked) == len(nearest) == 40
        assert not {it.document_id for it in found} & others
        assert len(found & nearest) >= 36


def test_a_small_scope_is_compared_whole(world, remembered):
    with statements_sent() as sent:
        search(SearchRequest(text="rollback", preset="helix"), principal=world.principal("bob"))
    assert not [sql for sql, _ in sent if "by the HNSW index" in sql]
    assert runtime.resources().index.scan == "halfvec"
