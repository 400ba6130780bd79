"""A request's filter stands beside the scope in every leg, and again where the pool is read."""

from datetime import UTC, datetime, timedelta

import pytest

from corecube.access import scope_for
from retrieval.index import store
from retrieval.index.filters import holds_any, known_projects
from retrieval.memory.items import Item, remember
from retrieval.models import Document
from retrieval.types import MemoryType, RequestFilter, Term

OLD, NEW = datetime(2020, 1, 1, tzinfo=UTC), datetime(2026, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)
SEARCH = store.TextSearch((0.1, 0.5, 0.7, 1.0), 0.2)


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
    near = {"scope": scope, "index": index, "depth": 50, "timeout_seconds": 5, "kept": kept}
    exact = store.dense_exact(vector, **near)
    words = {"terms": terms, "scope": scope, "search": SEARCH, "depth": 50, "most": 50, "timeout_seconds": 5}
    everything = store.dense_exact(vector, **near | {"kept": RequestFilter()})
    return {
        "exact": exact,
        "hnsw": store.dense_hnsw(vector, ef_search=100, **near),
        "fulltext": store.fulltext("'queue' | 'rollback'", kept=kept, **words).ranking,
        "capped": store.fulltext_capped("'queue' | 'rollback'", share=1.0, kept=kept, **words).ranking,
        "complete": store.complete(
            everything, vector=vector, index=index, terms=terms, scope=scope, search=SEARCH, kept=kept
        ),
    }


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
