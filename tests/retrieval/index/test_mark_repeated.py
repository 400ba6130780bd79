"""Text that stands in many documents of a connection."""

import time
import uuid

import pytest
from django.db import connection as database

from corecube.models import Compartment, Connection
from retrieval.index.writer import MIN_REPEATING, REPEATED_PENALTY, mark_repeated
from retrieval.models import Chunk, Document, OutboxEntry
from retrieval.text.fingerprints import simhash

DISCLAIMER = "The information on this page comes without warranty, and whoever relies on it does so at their own risk."
MANY = MIN_REPEATING


@pytest.fixture
def wiki(db):
    compartment = Compartment.objects.create(slug="c", name="C")
    return Connection.objects.create(slug="wiki", name="Wiki", kind="upload", compartment=compartment)


@pytest.fixture
def other(wiki):
    return Connection.objects.create(slug="other", name="Other", kind="upload", compartment=wiki.compartment)


def own(name, number=0):
    """Return a text that no other page has."""
    return f"What page {name} part {number} says about its own matter, in words that only it has: {uuid.uuid4().hex}"


def store(connection, number, *texts, tokens=100, quality_parts=None):
    """Store a document of these chunks; ids order as the numbers do."""
    identity = uuid.uuid5(uuid.UUID(int=connection.pk), str(number))
    row = {"byte_size": 1, "synced_at": "2026-01-01T00:00Z", "source_type": "text"}
    Document.objects.create(id=identity, connection=connection, external_id=str(number), title=f"{number}", **row)
    parts = quality_parts or {}
    Chunk.objects.bulk_create(
        Chunk(
            document_id=identity,
            ordinal=ordinal,
            connection_id=connection.pk,
            text=text,
            token_count=tokens,
            content_hash=f"{hash(text)}",
            simhash=simhash(text),
            quality=1 - sum(parts.values()),
            quality_parts=parts,
            search="",
        )
        for ordinal, text in enumerate(texts)
    )
    return identity


def marked(connection):
    """Return the titles of the documents that hold a marked chunk, one for each."""
    low = Chunk.objects.filter(connection_id=connection.pk, quality_parts__has_key="repeated")
    return sorted(low.values_list("document__title", flat=True))


def test_a_disclaimer_of_many_pages_is_marked_in_all_but_one(wiki):
    for number in range(MANY):
        store(wiki, number, own(number), own(number, 1), DISCLAIMER)
    assert mark_repeated(wiki.pk) == MANY - 1
    low = Chunk.objects.filter(quality__lt=1)
    assert {chunk.text for chunk in low} == {DISCLAIMER}
    assert {(chunk.quality, chunk.quality_parts["repeated"]) for chunk in low} == {(0.2, REPEATED_PENALTY)}


def test_fewer_pages_are_no_boilerplate(wiki):
    for number in range(MANY - 1):
        store(wiki, number, own(number), own(number, 1), DISCLAIMER)
    assert mark_repeated(wiki.pk) == 0


def test_the_page_that_is_most_about_it_keeps_it(wiki):
    for number in range(MANY):
        store(wiki, number, own(number), own(number, 1), DISCLAIMER)
    store(wiki, "about", DISCLAIMER)
    mark_repeated(wiki.pk)
    assert marked(wiki) == [str(number) for number in range(MANY)]


def test_a_file_that_lies_in_many_places_is_a_copy_and_no_boilerplate(wiki):
    texts = [own("same"), own("same", 1), DISCLAIMER]
    for number in range(2 * MANY):
        store(wiki, number, *texts)
    assert mark_repeated(wiki.pk) == 0


def test_versions_of_a_manual_keep_what_they_share(wiki):
    shared = [own("manual", part) for part in range(4)]
    for number in range(2 * MANY):
        store(wiki, number, *shared, own(number))
    assert mark_repeated(wiki.pk) == 0


def test_exactly_half_a_page_of_its_own_is_not_enough(wiki):
    for number in range(MANY):
        store(wiki, number, own(number), DISCLAIMER)
    assert mark_repeated(wiki.pk) == 0


def test_case_and_punctuation_make_no_difference_but_a_number_does(wiki, other):
    for number in range(MANY):
        text = DISCLAIMER.upper() if number % 2 else DISCLAIMER.replace(",", ";")
        store(wiki, number, own(number), own(number, 1), text)
        store(other, number, own(number), own(number, 1), f"{DISCLAIMER} Valid for {2000 + number}.")
    assert (mark_repeated(wiki.pk), mark_repeated(other.pk)) == (MANY - 1, 0)


def test_texts_of_one_fingerprint_are_told_apart_by_their_words(wiki):
    for number in range(MANY):
        store(wiki, number, own(number), own(number, 1), f"{DISCLAIMER} It costs {number} euros.")
    Chunk.objects.filter(ordinal=2).update(simhash=4711)
    assert mark_repeated(wiki.pk) == 0


def test_pages_of_other_connections_do_not_count(wiki, other):
    for number in range(MANY - 1):
        store(wiki, number, own(number), own(number, 1), DISCLAIMER)
    for number in range(MANY):
        store(other, number, own(number), own(number, 1), DISCLAIMER)
    assert (mark_repeated(wiki.pk), mark_repeated(other.pk)) == (0, MANY - 1)
    assert marked(wiki) == []


def test_it_is_given_back_when_copies_go(wiki):
    ids = [store(wiki, number, own(number), own(number, 1), DISCLAIMER) for number in range(MANY)]
    mark_repeated(wiki.pk)
    Document.objects.filter(pk=ids[0]).delete()
    still_marked = len(marked(wiki))
    assert mark_repeated(wiki.pk) == still_marked > 0
    assert marked(wiki) == []
    assert set(Chunk.objects.values_list("quality", flat=True)) == {1.0}


def test_other_parts_stay_as_they_are(wiki):
    for number in range(MANY):
        store(wiki, number, own(number), own(number, 1), DISCLAIMER, quality_parts={"legal": 0.125})
    mark_repeated(wiki.pk)
    low = Chunk.objects.filter(quality_parts__has_key="repeated")
    assert {chunk.quality for chunk in low} == {0.075}
    Document.objects.filter(title="0").delete()
    mark_repeated(wiki.pk)
    assert {chunk.quality for chunk in Chunk.objects.all()} == {0.875}


def test_a_second_time_changes_nothing(wiki):
    for number in range(2 * MANY):
        store(wiki, number, own(number), own(number, 1), DISCLAIMER)
    assert mark_repeated(wiki.pk) == 2 * MANY - 1
    assert mark_repeated(wiki.pk) == 0


def test_texts_without_words_are_left_alone(wiki):
    for number in range(MANY):
        store(wiki, number, own(number), own(number, 1), "---")
    assert mark_repeated(wiki.pk) == 0


def test_twenty_thousand_chunks_take_a_moment(wiki):
    with database.cursor() as cursor:
        cursor.execute(
            """
            INSERT INTO retrieval_document
                (id, connection_id, external_id, title, uri, source_type, fingerprint, byte_size, metadata, synced_at)
            SELECT md5(number::text)::uuid, %(connection)s, number, number, '', 'text', '', 1, '{}', now()
            FROM generate_series(1, 4000) AS number
            """,
            {"connection": wiki.pk},
        )
        cursor.execute(
            """
            INSERT INTO retrieval_chunk
                (document_id, ordinal, connection_id, text, token_count, content_hash, simhash, search, heading_path)
            SELECT document.id, ordinal, %(connection)s, repeat('words of it ', 20), 100, '',
                CASE WHEN ordinal = 0 THEN 1 ELSE hashtextextended(title, ordinal) END, '', '{}'
            FROM retrieval_document AS document, generate_series(0, 4) AS ordinal
            """,
            {"connection": wiki.pk},
        )
        cursor.execute("ANALYZE retrieval_document, retrieval_chunk")
    started = time.perf_counter()
    assert mark_repeated(wiki.pk) == 3999
    # Measured 0.3 s, all but a tenth of it for the 3,999 rows that change.
    assert time.perf_counter() - started < 3
    started = time.perf_counter()
    assert mark_repeated(wiki.pk) == 0
    assert time.perf_counter() - started < 1


def test_read_models_are_told_whose_quality_changed(wiki):
    documents = [store(wiki, number, DISCLAIMER, own(number), own(number, 1)) for number in range(MANY)]
    OutboxEntry.objects.all().delete()
    changed = mark_repeated(wiki.pk)
    told = set(OutboxEntry.objects.values_list("document_id", "deleted"))
    low = set(Chunk.objects.filter(quality_parts__has_key="repeated").values_list("document_id", flat=True))
    assert changed == len(low) == len(documents) - 1
    assert told == {(document, False) for document in low}
    OutboxEntry.objects.all().delete()
    assert mark_repeated(wiki.pk) == 0
    assert not OutboxEntry.objects.exists()
