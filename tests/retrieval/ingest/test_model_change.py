"""One embedding model after another, while syncs and searches go on."""

import uuid
from dataclasses import dataclass

import numpy as np
import pytest
from django.db import connection

from corecube.errors import ConfigError
from corecube.models import AuditEvent
from retrieval.errors import EncoderError, EncoderUnavailableError, IndexStateError
from retrieval.index import active, embedding_index
from retrieval.index.embedding_index import active_row, all_indexes, progress
from retrieval.index.store import VectorIndex
from retrieval.index.writer import MissingVector, fill_index
from retrieval.ingest import encode, indexes, reindex
from retrieval.ingest.sync import sync_connection
from retrieval.models import Chunk, Document, Embedding, EmbeddingIndex
from retrieval.search import runtime
from retrieval.search.request import SearchRequest
from retrieval.search.service import search
from tests.fakes import HashEncoder


class Named(HashEncoder):
    """Has a name of its own, counts what it embeds, and fails when told."""

    def __init__(self, name, dim):
        super().__init__(dim)
        self.name = name
        self.embedded = 0
        self.error = None

    def encode_documents(self, texts):
        if self.error:
            raise self.error
        self.embedded += len(texts)
        return super().encode_documents(texts)


class Reader(Named):
    """Gives a passage a vector of itself and of its document's title."""

    passages_problem = ""

    def encode_passages(self, title, passages, *, progress=lambda: None):
        progress()
        return self.encode_documents([f"{title} {passage}" for passage in passages])


@dataclass(frozen=True)
class Fixed:
    """A choice that is loaded already."""

    encoder: HashEncoder

    @property
    def source(self):
        return f"local:{self.encoder.name}"

    def load(self):
        return self.encoder


@pytest.fixture
def models(monkeypatch, world):
    """Return the encoders by name; the world's index is the first one's, made before."""
    found = {"hash": HashEncoder(), "new": Named("new", 96), "late": Reader("late", 48)}

    def encoder_of(row):
        embedding_index.same_model(row, found[row.model])
        return found[row.model]

    monkeypatch.setattr(active, "encoder_of", encoder_of)
    monkeypatch.setattr(active, "encoder", lambda row=None: encoder_of(row or active_row()))
    return found


@pytest.fixture
def begin(models, django_capture_on_commit_callbacks):
    def begin(name="new", mode="chunk_first"):
        return indexes.start_index(Fixed(models[name]), actor=None, mode=mode, queue=False)

    return begin


def find(world, text="rollback staging database", who="alice"):
    return search(SearchRequest(text=text), principal=world.principal(who))


def found(outcome):
    return {hit.chunk_id for hit in outcome.hits}


def vectors(row):
    return {(it.document_id, it.ordinal) for it in Embedding.objects.filter(index_id=row.pk)}


def chunks():
    return set(Chunk.objects.values_list("document_id", "ordinal"))


def test_a_new_index_is_built_switched_to_and_back(world, models, begin):
    old = active_row()
    before = found(find(world))
    row = begin()
    assert (row.status, row.dim, progress(row).missing) == ("building", 96, len(chunks()))
    with pytest.raises(IndexStateError, match="have no vector"):
        indexes.switch_to(row, actor=None)
    assert found(find(world)) == before
    assert reindex.build_index(row)
    assert vectors(row) == chunks()
    assert find(world).state.vector.size == 64
    indexes.switch_to(row, actor=world.alice)
    after = find(world)
    assert (after.state.vector.size, found(after)) == (96, before)
    assert all("cosine" in hit.signals for hit in after.hits)
    assert indexes.roll_back(actor=world.alice).pk == old.pk
    assert find(world).state.vector.size == 64
    assert [it.pk for it in all_indexes()] == [old.pk, row.pk]
    actions = AuditEvent.objects.filter(action__startswith="index.").order_by("pk").values_list("action", flat=True)
    assert list(actions) == ["index.started", "index.switched", "index.switched"]


def test_syncs_write_every_index_that_is_kept(world, models, begin):
    row = begin()
    reindex.build_index(row)
    (world.root / "runbooks" / "new.md").write_text("# Tape\n\nThe tape robot needs grease in spring.\n")
    (world.root / "runbooks" / "queues.txt").unlink()
    sync_connection(world.runbooks)
    assert vectors(row) == vectors(active_row()) == chunks()
    indexes.switch_to(row, actor=None)
    (world.root / "runbooks" / "later.md").write_text("# Later\n\nThe lamp is blue.\n")
    sync_connection(world.runbooks)
    for kept in all_indexes():
        assert vectors(kept) == chunks()
    assert find(world, "which colour has the lamp").hits[0].facts.title == "Later"
    indexes.roll_back(actor=None)
    assert find(world, "which colour has the lamp").hits[0].facts.title == "Later"


def test_after_a_switch_nothing_is_read_or_embedded_again(world, models, begin):
    row = begin()
    reindex.build_index(row)
    indexes.switch_to(row, actor=None)
    embedded = models["new"].embedded
    sync = sync_connection(world.runbooks)
    assert (sync.changed, sync.unchanged) == (0, 2)
    assert models["new"].embedded == embedded


def test_an_index_that_begins_in_the_middle_of_a_batch_gets_its_vectors(world, models, begin, monkeypatch):
    """Between encoding and storing a batch an index is added: it is written all the same."""
    rows = []
    hold = encode.hold_indexes

    def hold_after_a_start():
        if not rows:
            rows.append(begin())
        return hold()

    monkeypatch.setattr(encode, "hold_indexes", hold_after_a_start)
    (world.root / "runbooks" / "tape.md").write_text("# Tape\n\nGrease in spring.\n")
    sync_connection(world.runbooks)
    tape = Document.objects.get(external_id="tape.md")
    assert {it[0] for it in vectors(rows[0])} == {tape.pk}


def test_a_build_that_ends_in_the_middle_goes_on_where_it_stopped(world, models, begin, monkeypatch):
    monkeypatch.setattr(reindex, "_BATCH_CHUNKS", 1)
    row = begin()

    def end_after_two(_):
        if len({it[0] for it in vectors(row)}) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        reindex.build_index(row, report=end_after_two)
    done = models["new"].embedded
    assert 0 < done < len(chunks())
    assert [it.pk for it in reindex.unfinished_indexes()] == [row.pk]
    assert reindex.build_index(row)
    assert models["new"].embedded == len(chunks())
    assert reindex.unfinished_indexes() == []
    row.refresh_from_db()
    assert row.built == len(chunks())
    assert progress(row).rate > 0


def test_two_builds_of_one_index_do_not_run_at_once(begin):
    row = begin()
    other = connection.copy()
    try:
        with other.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_lock(7303, %s)", [row.pk])
            assert not reindex.build_index(row)
            assert vectors(row) == set()
            cursor.execute("SELECT pg_advisory_unlock(7303, %s)", [row.pk])
        assert reindex.build_index(row)
    finally:
        other.close()


def test_a_vector_of_a_document_that_changed_meanwhile_is_left_out(world, models, begin):
    row = begin()
    chunk = Chunk.objects.select_related("document").first()
    vector = models["new"].encode_query("x")
    known = MissingVector(chunk.document_id, chunk.ordinal, chunk.document.fingerprint, vector)
    gone = MissingVector(uuid.uuid4(), 0, chunk.document.fingerprint, vector)
    stale = MissingVector(chunk.document_id, chunk.ordinal, "0" * 64, vector)
    index = VectorIndex(row.pk, row.dim)
    fill_index(index, [stale, gone])
    assert vectors(row) == set()
    fill_index(index, [known])
    fill_index(index, [known])
    assert vectors(row) == {(chunk.document_id, chunk.ordinal)}


def test_a_failing_model_of_another_index_keeps_no_sync_from_its_work(world, models, begin):
    row = begin()
    reindex.build_index(row)
    models["new"].error = EncoderUnavailableError("The embedding service is down.")
    (world.root / "runbooks" / "new.md").write_text("# Tape\n\nThe tape robot needs grease.\n")
    assert sync_connection(world.runbooks).status == "done"
    row.refresh_from_db()
    assert (row.ready_at, row.problem) == (None, "The embedding service is down.")
    with pytest.raises(IndexStateError, match="1 chunks have no vector"):
        indexes.switch_to(row, actor=None)
    with pytest.raises(EncoderUnavailableError):
        reindex.build_index(row)
    models["new"].error = None
    assert reindex.build_index(row)
    row.refresh_from_db()
    assert row.problem == ""
    assert vectors(row) == chunks()


def test_dropping_removes_every_vector_of_an_index_and_of_no_other(world, models, begin):
    row = begin()
    reindex.build_index(row)
    with pytest.raises(IndexStateError, match="active"):
        indexes.drop(active_row(), actor=None)
    indexes.drop(row, actor=None)
    assert set(Embedding.objects.values_list("index_id", flat=True)) == {active_row().pk}
    assert vectors(active_row()) == chunks()
    again = begin()
    assert vectors(again) == set()


def test_what_a_killed_drop_left_is_deleted_later(begin):
    row = begin()
    reindex.build_index(row)
    EmbeddingIndex.objects.filter(pk=row.pk).delete()
    embedding_index.clear_dropped()
    assert set(Embedding.objects.values_list("index_id", flat=True)) == {active_row().pk}


def test_one_index_at_a_time_is_built_and_every_previous_one_is_retained(begin, models):
    row = begin()
    models["third"] = Named("third", 32)
    with pytest.raises(IndexStateError, match="is not active yet"):
        begin("third")
    reindex.build_index(row)
    indexes.switch_to(row, actor=None)
    with pytest.raises(IndexStateError, match="already uses this model"):
        begin("hash")
    third = begin("third")
    reindex.build_index(third)
    statuses = {it.model: it.status for it in embedding_index.all_indexes()}
    assert statuses == {"new": "active", "hash": "previous", "third": "building"}
    assert vectors(third) == vectors(row) == chunks()


def test_the_same_vectors_once_more_are_refused(begin):
    with pytest.raises(IndexStateError, match="already"):
        begin("hash")


def test_late_vectors_come_from_the_whole_document(world, models, begin):
    row = begin("late", mode="late")
    assert reindex.build_index(row)
    chunk = Chunk.objects.select_related("document").get(document__external_id="queues.txt")
    stored = Embedding.objects.get(document_id=chunk.document_id, index_id=row.pk).vector.to_numpy().astype(np.float32)
    expected = models["late"].encode_passages(chunk.document.title, [chunk.text])[0]
    assert np.allclose(stored, expected, atol=1e-3)
    indexes.switch_to(row, actor=None)
    embedded = models["late"].embedded
    rollback = world.root / "runbooks" / "rollback.md"
    rollback.write_text(rollback.read_text().replace("release captain", "release admiral"))
    sync_connection(world.runbooks)
    # Every passage of the changed document is read again, none of the others.
    assert models["late"].embedded - embedded == Chunk.objects.filter(document__external_id="rollback.md").count()


def test_late_chunking_needs_a_model_for_it(begin):
    with pytest.raises(ConfigError, match="does not support late chunking"):
        begin(mode="late")


def test_a_search_that_began_on_the_old_index_ends_on_it(world, models, begin):
    row = begin()
    reindex.build_index(row)
    resources = runtime.resources()
    indexes.switch_to(row, actor=None)
    outcome = search(SearchRequest(text="rollback"), principal=world.principal("alice"), resources=resources)
    assert outcome.state.vector.size == 64
    assert outcome.hits
    assert not outcome.state.degraded


def test_a_search_whose_model_is_looked_up_around_a_switch_ends_on_the_index_that_it_read(
    world, models, begin, monkeypatch
):
    before, row = active_row(), begin()
    reindex.build_index(row)
    encoder = active.encoder

    def switched_before(read):
        if active_row().pk != row.pk:
            indexes.switch_to(row, actor=None)
        return encoder(read)

    monkeypatch.setattr(active, "encoder", switched_before)
    tools = runtime.resources()
    assert (tools.index.id, tools.encoder.dim) == (before.pk, 64)
    assert (runtime.resources().index.id, runtime.resources().encoder.dim) == (row.pk, 96)


def test_without_a_query_vector_full_text_is_searched(world, models, monkeypatch):
    monkeypatch.setattr(models["hash"], "encode_query", failing, raising=False)
    outcome = find(world, "rollback")
    assert {hit.facts.title for hit in outcome.hits} == {"Rolling back", "Breach of March", "Costs"}
    assert "embed_failed" in outcome.state.degraded
    assert all("cosine" not in hit.signals and hit.facts for hit in outcome.hits)
    assert outcome.passages
    assert outcome.state.answerability is not None


def failing(_):
    raise EncoderError("The model failed.")
