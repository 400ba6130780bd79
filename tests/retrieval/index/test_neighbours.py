"""What stands around a hit, read from PostgreSQL in one statement, in scope alone, by its key."""

import uuid
from dataclasses import asdict

import pytest
from django.db import connection as database
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from corecube.scope import AccessScope
from retrieval.engine.types import ChunkId, Hit, ScoreType
from retrieval.index.neighbours import NEIGHBOURS, neighbour_parameters, neighbours_of
from retrieval.models import Chunk, Document
from retrieval.presets.contextpack.stages.neighbours import NeighboursConfig
from tests.retrieval.index.test_plans import indexes, plan_of, scans

#: Pages of ten chunks, and the first and last ordinal of each one's section.
PAGES = (1, 1, 1, 2, 2, 3, 3, 4, 6, 6)
SECTIONS = ((0, 1), (0, 1), (2, 4), (2, 4), (2, 4), (5, 5), (6, 6), (7, 7), (8, 9), (8, 9))


def written(connection, number, pages=PAGES, sections=SECTIONS, **more):
    """Store a document with a chunk for each page given, and return its id."""
    document = Document.objects.create(
        id=uuid.UUID(int=number),
        connection=connection,
        external_id=f"paged {number}",
        title=f"Paged {number}",
        source_type="pdf",
        byte_size=0,
        synced_at=timezone.now(),
    )
    Chunk.objects.bulk_create(
        Chunk(
            document=document,
            ordinal=ordinal,
            connection_id=connection.pk,
            text=f"chunk {ordinal}",
            token_count=2,
            content_hash=f"{number}:{ordinal}",
            page_start=page,
            page_end=page,
            section_start=start,
            section_end=end,
            **more,
        )
        for ordinal, (page, (start, end)) in enumerate(zip(pages, sections, strict=True))
    )
    return document.pk


def hit(document, ordinal):
    return Hit(ChunkId(document, ordinal), 1.0, ScoreType.RUBRIC)


def around(document, ordinal, scope, **numbers):
    """Return the ordinals around a chunk by relation."""
    reach = asdict(NeighboursConfig(**numbers))
    found = neighbours_of((hit(document, ordinal),), reach=reach, scope=scope, min_quality=0.3, timeout_seconds=5)
    assert all(it.primary == ChunkId(document, ordinal) for it in found)
    by_relation = {"parent": [], "sibling": [], "cross_page": []}
    for it in found:
        by_relation[it.relation].append(it.hit.chunk_id.ordinal)
    return by_relation


@pytest.fixture
def paged(world):
    return written(world.runbooks, 1)


@pytest.mark.parametrize(
    ("ordinal", "parents", "siblings", "pages"),
    [
        # Chunk 0: its section is 0 and 1; the two nearest of page 2 are 3 and 4.
        (0, [1], [1], [3, 4]),
        # Chunk 2 stands on page 1, its section goes on to page 2.
        (2, [3, 4], [1, 3], [3, 4]),
        # Chunk 4: before it on page 1 stands 2, after it on page 3 stand 5 and 6.
        (4, [2, 3], [3], [2, 5]),
        # Chunk 7 stands alone on page 4; page 5 is empty, and page 6 is not next to it.
        (7, [], [], [5, 6]),
        (8, [9], [9], []),
    ],
)
def test_relations_by_hand(paged, bob, ordinal, parents, siblings, pages):
    assert around(paged, ordinal, bob) == {"parent": parents, "sibling": siblings, "cross_page": pages}


def test_the_numbers_bound_them(paged, bob):
    assert around(paged, 4, bob, parents=0, same_page=0, cross_page=0) == {
        "parent": [],
        "sibling": [],
        "cross_page": [],
    }
    assert around(paged, 2, bob, same_page=2)["sibling"] == [0, 1, 3, 4]
    assert around(paged, 2, bob, cross_page=1)["cross_page"] == [3]


def test_without_pages_there_are_sections_alone(world, bob):
    document = written(world.runbooks, 2, pages=(None,) * 10)
    assert around(document, 3, bob) == {"parent": [2, 4], "sibling": [2, 4], "cross_page": []}


def test_boilerplate_is_left_out(world, bob):
    document = written(world.runbooks, 3, quality=0.2)
    assert around(document, 3, bob) == {"parent": [], "sibling": [], "cross_page": []}


def test_boilerplate_takes_nobodys_place(world, bob):
    document = written(world.runbooks, 4, pages=(1, 2, 2, 2, 2, 2, 3, 3, 3, 3))
    Chunk.objects.filter(document_id=document, ordinal__in=(1, 2, 5, 6)).update(quality=0.1)
    # Of page 2 the nearest to chunk 0 are 1 and 2, which do not count.
    assert around(document, 0, bob)["cross_page"] == [3, 4]
    # And before chunk 7, on page 3, stands 5.
    assert around(document, 7, bob)["cross_page"] == [3, 4]


def test_all_hits_are_looked_at_in_one_statement(paged, bob, world):
    other = written(world.runbooks, 4)
    with CaptureQueriesContext(database) as queries:
        found = neighbours_of(
            (hit(other, 8), hit(paged, 8)),
            reach=asdict(NeighboursConfig()),
            scope=bob,
            min_quality=0.3,
            timeout_seconds=5,
        )
    assert [(it.primary.document_id, it.hit.chunk_id.ordinal) for it in found] == [
        (other, 9),
        (other, 9),
        (paged, 9),
        (paged, 9),
    ]
    assert sum("retrieval_chunk" in query["sql"] for query in queries) == 1
    assert found[0].hit.chunk.title == "Paged 4"


class TestLeaks:
    def test_a_hit_out_of_scope_has_nothing_around_it(self, world, bob):
        for number, connection in enumerate((world.vault, world.ledger), start=5):
            document = written(connection, number)
            assert around(document, 3, bob) == {"parent": [], "sibling": [], "cross_page": []}

    def test_a_chunk_out_of_scope_is_not_read_beside_one_in_scope(self, paged, world, bob):
        # No document has chunks of two connections; the statement does not rely on it.
        Chunk.objects.filter(document_id=paged, ordinal__in=(2, 5)).update(connection_id=world.vault.pk)
        assert around(paged, 4, bob) == {"parent": [3], "sibling": [3], "cross_page": [1, 6]}

    def test_a_document_out_of_scope_is_not_read_by_chunks_in_scope(self, paged, world, bob):
        Document.objects.filter(pk=paged).update(connection=world.vault)
        assert around(paged, 4, bob) == {"parent": [], "sibling": [], "cross_page": []}

    def test_an_empty_scope_reads_nothing(self, paged):
        assert around(paged, 4, AccessScope("nobody", ())) == {"parent": [], "sibling": [], "cross_page": []}


def test_the_statement_reads_by_keys_alone(world, bob):
    documents = [written(world.runbooks, number) for number in range(10, 14)]
    with database.cursor() as cursor:
        cursor.execute(
            "INSERT INTO retrieval_chunk (document_id, ordinal, connection_id, text, heading_path, token_count,"
            " content_hash, search, page_start, page_end)"
            " SELECT %s, number, %s, '', '{}', 1, '', '', number / 3, number / 3"
            " FROM generate_series(1000, 6000) AS number",
            [documents[0], world.runbooks.pk],
        )
    Document.objects.bulk_create(
        Document(
            id=uuid.UUID(int=number),
            connection=world.runbooks,
            external_id=f"other {number}",
            source_type="text",
            byte_size=0,
            synced_at=timezone.now(),
        )
        for number in range(1000, 4000)
    )
    parameters = neighbour_parameters(
        tuple(hit(document, 4) for document in documents), asdict(NeighboursConfig()), bob, min_quality=0.3
    )
    plan = plan_of(NEIGHBOURS, parameters)
    assert {"retrieval_chunk_pkey", "retrieval_document_pkey"} <= indexes(plan)
    assert "Seq Scan" not in scans(plan, "retrieval_chunk")
    # The chunks before and after a hit are walked along the key, which ends after as many as are wanted.
    assert not {"Gather", "Gather Merge"} & {node["Node Type"] for node in plan}
    limited = [node for node in plan if node["Node Type"] == "Limit"]
    assert len(limited) == 3
