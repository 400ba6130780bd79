"""Parts of documents by their headings: in scope, under the filter, as runs of chunks."""

from uuid import UUID

import pytest
from django.db import connection as database
from django.utils import timezone

from retrieval.engine.state import RequestFilter
from retrieval.engine.types import Term
from retrieval.index.recovery import headings_for
from retrieval.models import Document

DEBT, RENT = Term("debt", 5, 2.0), Term("rent", 9, 1.0)


@pytest.fixture
def book(world):
    """Add a document of eight chunks under headings, one of another text, and a hidden one like the first."""
    made = {
        "own": (1, world.runbooks, ["Debt", "Debt", "Rent", "Debt", "Debt and rent", "Debt and rent", "Other", ""]),
        "hidden": (2, world.vault, ["Debt and rent", "Debt"]),
    }
    for name, (number, connection, headings) in made.items():
        document = Document.objects.create(
            id=UUID(int=number),
            connection=connection,
            external_id=name,
            title="Debt",
            source_type="pdf",
            byte_size=0,
            synced_at=timezone.now(),
        )
        with database.cursor() as cursor:
            for ordinal, heading in enumerate(headings):
                cursor.execute(
                    "INSERT INTO retrieval_chunk (document_id, ordinal, connection_id, text, heading_path,"
                    " token_count, content_hash, quality, search) VALUES (%s, %s, %s, 'debt rent', %s, 1, '', %s,"
                    " setweight(to_tsvector('english', 'Debt'), 'A') || setweight(to_tsvector('english', %s), 'B')"
                    " || setweight(to_tsvector('english', 'debt rent'), 'C'))",
                    [document.pk, ordinal, connection.pk, [heading] if heading else [], 1 - ordinal / 10, heading],
                )


def found(scope, *terms, kept=None, depth=10):
    ranges = headings_for(terms, scope=scope, request_filter=kept or RequestFilter(), depth=depth, timeout_seconds=5)
    return [(it.document_id.int, it.heading_path[0], it.start, it.end, it.score) for it in ranges]


def test_runs_of_chunks_under_headings_with_the_most_of_the_terms_come_first(book, bob):
    assert found(bob, DEBT, RENT) == [
        (1, "Debt and rent", 4, 5, 3.0),
        (1, "Debt", 0, 1, 2.0),
        (1, "Debt", 3, 3, 2.0),
        (1, "Rent", 2, 2, 1.0),
    ]
    assert [it[1] for it in found(bob, DEBT, RENT, depth=1)] == ["Debt and rent"]


def test_titles_and_texts_are_no_headings(book, bob):
    assert [it[1] for it in found(bob, RENT)] == ["Rent", "Debt and rent"]
    assert found(bob, Term("nowhere", 0, 3.0)) == []
    assert found(bob) == []


def test_nothing_out_of_scope_is_found(book, bob, alice):
    assert {it[0] for it in found(bob, DEBT, RENT)} == {1}
    assert {it[0] for it in found(alice, DEBT, RENT)} == {1, 2}


def test_the_filter_holds_for_headings_too(book, alice):
    assert [it[1:4] for it in found(alice, DEBT, kept=RequestFilter(min_quality=0.85))] == [
        ("Debt", 0, 1),
        ("Debt and rent", 0, 0),
        ("Debt", 1, 1),
    ]
    assert {it[0] for it in found(alice, DEBT, kept=RequestFilter(documents=frozenset({UUID(int=2)})))} == {2}
    assert found(alice, DEBT, kept=RequestFilter(source_types=frozenset({"excel"}))) == []


def test_signs_in_terms_are_taken_as_they_are(book, bob):
    assert found(bob, Term("o'brien:*", 1, 1.0), Term("a\\b", 1, 1.0), DEBT)
