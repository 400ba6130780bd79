"""Enrichment while syncs store documents and an embedding index is built."""

import threading

import numpy as np
import pytest
from django.db import connection

from retrieval.index import active, embedding_index
from retrieval.index.embedding_index import active_row, all_indexes, progress
from retrieval.index.store import VectorIndex
from retrieval.index.writer import MissingVector, fill_index, fold_term_counts
from retrieval.ingest import indexes, reindex
from retrieval.ingest.enrich import services
from retrieval.ingest.enrich.services import enrich, remove_enrichment
from retrieval.ingest.sync import sync_connection
from retrieval.models import Chunk, Document, Embedding, TermFrequency
from retrieval.text.document import in_context
from tests.fakes import HashEncoder
from tests.retrieval.ingest.test_model_change import Fixed, Named

CONTEXT = "The chunk speaks of the works in hall seven."


@pytest.fixture
def models(monkeypatch, world):
    found = {"hash": HashEncoder(), "new": Named("new", 96)}

    def encoder_of(row):
        embedding_index.same_model(row, found[row.model])
        return found[row.model]

    monkeypatch.setattr(active, "encoder_of", encoder_of)
    monkeypatch.setattr(active, "encoder", lambda row=None: encoder_of(row or active_row()))
    return found


@pytest.fixture
def begin(models):
    return lambda: indexes.start_index(Fixed(models["new"]), actor=None, mode="chunk_first", queue=False)


def require_right_vectors(source):
    """Every chunk has, in every index that is kept, the vector of its text as it stands now."""
    for row in all_indexes():
        encoder = active.encoder_of(row)
        for chunk in Chunk.objects.filter(connection_id=source.pk).select_related("document"):
            text = in_context(chunk.document.title, chunk.heading_path, chunk.text, chunk.context_line)
            stored = Embedding.objects.get(document_id=chunk.document_id, ordinal=chunk.ordinal, index_id=row.pk)
            assert np.allclose(stored.vector.to_numpy(), encoder.encode_documents([text])[0], atol=2e-3)


def require_right_counts(source):
    fold_term_counts(source.pk)
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT lexeme, count(*) FROM retrieval_chunk, unnest(array_append(tsvector_to_array(search), '')) lexeme"
            " WHERE connection_id = %s GROUP BY lexeme",
            [source.pk],
        )
        counted = dict(cursor.fetchall())
    assert dict(TermFrequency.objects.filter(connection_id=source.pk).values_list("lexeme", "chunks")) == counted


def write_pages(folder, version, count=24):
    for number in range(count):
        text = f"It says number {number} in version {version if number % 2 else 0}. " * 20
        (folder / f"page{number}.md").write_text(f"# Page {number}\n\n{text}")


@pytest.mark.django_db(transaction=True)
def test_a_sync_into_two_indexes_while_chunks_are_enriched(works, model, begin, settings, tmp_path, monkeypatch):
    monkeypatch.setattr(services, "_BATCH_CHUNKS", 2)
    settings.CORECUBE_ENRICH_CONCURRENCY = 2
    write_pages(tmp_path / "works", 1)
    sync_connection(works)
    reindex.build_index(begin())
    first_asked = threading.Event()
    model.reply = lambda _: first_asked.set() or CONTEXT
    failed = []

    def sync_again():
        try:
            first_asked.wait(10)
            for version in (2, 3):
                write_pages(tmp_path / "works", version)
                sync_connection(works)
        except Exception as error:  # noqa: BLE001 -- looked at by the test
            failed.append(error)
        finally:
            connection.close()

    thread = threading.Thread(target=sync_again)
    thread.start()
    passes = [enrich(works), enrich(works)]
    thread.join()
    assert failed == []
    assert sum(it.enriched for it in passes) >= 12
    assert Document.objects.filter(connection=works).count() == 26
    assert enrich(works).failed == 0
    assert not Chunk.objects.filter(connection_id=works.pk, context_line="").exists()
    require_right_vectors(works)
    require_right_counts(works)


def test_an_index_that_begins_while_a_pass_stores_gets_the_new_vectors(works, model, begin, monkeypatch):
    rows = []
    store = services.store_enrichment

    def store_after_a_start(*arguments, **named):
        if not rows:
            rows.append(begin())
            reindex.build_index(rows[0])
        return store(*arguments, **named)

    monkeypatch.setattr(services, "store_enrichment", store_after_a_start)
    assert enrich(works).enriched == 2
    require_right_vectors(works)
    assert remove_enrichment(works) == 2
    require_right_vectors(works)


def test_a_vector_of_a_chunk_that_was_enriched_meanwhile_is_left_out(works, model, begin, models):
    row = begin()
    chunk = Chunk.objects.filter(connection_id=works.pk).select_related("document").first()
    vector = models["new"].encode_query("x")
    before = MissingVector(chunk.document_id, chunk.ordinal, chunk.document.fingerprint, vector)
    missing = progress(row).missing
    enrich(works)
    fill_index(VectorIndex(row.pk, row.dim), [before])
    assert progress(row).missing == missing
    assert reindex.build_index(row)
    require_right_vectors(works)


def test_a_chunk_under_another_title_by_now_is_left_alone(works, model):
    found = services.drawn(works, limit=10, seed="s")
    Document.objects.filter(connection=works, title="Pump seven").update(title="Renamed")
    answered = [services.Answer(wanted, CONTEXT, ()) for wanted in found]
    assert services._store(works, answered) == 1
    assert Chunk.objects.get(document__title="Renamed").context_line == ""
