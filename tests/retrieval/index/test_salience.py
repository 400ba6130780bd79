"""Salience of stored chunks, worked out by hand."""

from math import log

import pytest
from django.utils import timezone

from corecube.models import Connection
from retrieval.index.salience import fill_salience
from retrieval.index.writer import EncodedChunk, StoredDocument, fold_term_counts, store_documents
from retrieval.ingest.sync import sync_connection
from retrieval.models import Chunk, Document
from retrieval.models.document import document_id
from retrieval.text.document import ChunkDraft
from retrieval.text.quality import quality_of


@pytest.fixture
def barn(world):
    """A connection without documents, whose every word is a lexeme."""
    return Connection.objects.create(
        slug="barn", name="Barn", kind="folder", compartment=world.runbooks.compartment, language="simple"
    )


def store(connection, title, *chunks):
    """Store a document; each chunk is its heading path and its text."""
    row = Document(
        id=document_id(connection.pk, title),
        connection=connection,
        external_id=title,
        title=title,
        source_type="text",
        byte_size=1,
        synced_at=timezone.now(),
    )
    encoded = [
        EncodedChunk(
            ChunkDraft(ordinal, text, path, 1), content_hash="", simhash=0, quality=quality_of(text), vectors={}
        )
        for ordinal, (path, text) in enumerate(chunks)
    ]
    store_documents([StoredDocument(row, tuple(encoded))], text_search_config="simple")


def saliences(connection, title):
    chunks = Chunk.objects.filter(connection_id=connection.pk, document__title=title).order_by("ordinal")
    return list(chunks.values_list("salience", flat=True))


def test_the_shares_of_stored_chunks(barn):
    store(barn, "Yak", (("Zebra herd",), "yak zebra goat"), (("Barn",), "goat goat cow"))
    store(barn, "Barn", ((), "cow"))
    fold_term_counts(barn.pk)
    assert fill_salience(barn.pk) == 3
    # Of 3 chunks one holds zebra, two hold yak (once as the title), goat and cow.
    zebra, other = log(1 + 3 / 1), log(1 + 3 / 2)
    terms = zebra + 3 * other
    first = 0.5 * (zebra + 2 * other) / terms + 0.2 * 1 + 0.15 * 1 + 0.15 * 0.5
    second = 0.5 * (2 * other) / terms + 0.2 * 0.5 + 0.15 * 0 + 0.15 * 0
    assert saliences(barn, "Yak") == pytest.approx([first, second], abs=1e-5)
    # All of its terms, and the first place; its title is not in its text, and it has no headings.
    assert saliences(barn, "Barn") == pytest.approx([(0.5 + 0.2) / 0.85])


def test_only_the_twenty_most_distinctive_terms_count(barn):
    often = " ".join(f"word{number} word{number}" for number in range(20))
    store(barn, "Long", ((), often), ((), "pear plum fig"))
    fold_term_counts(barn.pk)
    fill_salience(barn.pk)
    # The title stands in neither text: the second one has nothing but its place.
    assert saliences(barn, "Long") == pytest.approx([0.7 / 0.85, 0.2 * 0.5 / 0.85])


def test_a_text_without_words_has_its_place_alone(barn):
    store(barn, "...", ((), "..."), ((), "!"))
    fold_term_counts(barn.pk)
    fill_salience(barn.pk)
    assert saliences(barn, "...") == pytest.approx([1.0, 0.5])


def test_what_has_a_salience_keeps_it(world):
    chunks = Chunk.objects.filter(connection_id=world.runbooks.pk)
    assert not chunks.filter(salience=None).exists()
    kept, judged = chunks.order_by("document_id")
    before = judged.salience
    chunks.filter(document_id=kept.document_id).update(salience=0.123)
    chunks.filter(document_id=judged.document_id).update(salience=None)
    assert fill_salience(world.runbooks.pk) == 1
    assert fill_salience(world.runbooks.pk) == 0
    assert set(chunks.values_list("salience", flat=True)) == {0.123, before}


def test_a_changed_document_is_judged_anew(world):
    (world.root / "runbooks" / "queues.txt").write_text("Draining the queue takes a minute.\n\nAsk for the lamp.")
    sync_connection(world.runbooks)
    assert not Chunk.objects.filter(connection_id=world.runbooks.pk, salience=None).exists()
