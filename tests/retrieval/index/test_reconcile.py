"""Comparing the read models with the database: what differs is replaced, and nothing else is written."""

import uuid

import numpy as np
import pytest
from django.core.management import call_command
from pgvector import HalfVector

from retrieval.engine.types import ChunkId
from retrieval.index import outbox
from retrieval.index.bm25 import follower as bm25
from retrieval.index.bm25.writer import Writer as TextWriter
from retrieval.index.folder import look
from retrieval.index.read_models import keep_up
from retrieval.index.types import ChunkTexts
from retrieval.index.vectors import follower as vectors
from retrieval.index.vectors.writer import Writer as VectorWriter
from retrieval.ingest.sync import sync_connection
from retrieval.models import Chunk, Document, Embedding
from retrieval.tasks import worker
from tests.followers import wait_for_others, write

_STRANGER = uuid.UUID(int=1)


class Text:
    """The BM25 index, and how its content and the database can disagree."""

    command, commit = "bm25", "meta.json"
    follower = staticmethod(bm25.follower)

    def writer(self, build):
        return TextWriter(build, "english")

    def change(self, document):
        assert Chunk.objects.filter(document_id=document).update(text="No entry names this text.")

    def lose(self, build, document, position):
        with self.writer(build) as writer:
            writer.replace([document], [])
            writer.commit(position)

    def invent(self, build, document, position):
        with self.writer(build) as writer:
            writer.add([ChunkTexts("english", document, 0, 1, "Title", (), "Text", (), None)])
            writer.commit(position)


class Vectors:
    """The vector files, and how their content and the database can disagree."""

    command, commit = "vectors", "STATE"
    follower = staticmethod(vectors.follower)

    def writer(self, build):
        return VectorWriter(build, self.follower().about()["dim"])

    def change(self, document):
        dim = self.follower().about()["dim"]
        assert Embedding.objects.filter(document_id=document).update(vector=HalfVector(np.eye(dim)[0]))

    def lose(self, build, document, position):
        writer = self.writer(build)
        writer.remove([document])
        writer.commit(position)

    def invent(self, build, document, position):
        writer = self.writer(build)
        writer.add(1, [ChunkId(document, 0)], np.eye(writer.dim, dtype=np.float32)[:1])
        writer.commit(position)


@pytest.fixture(params=[Text, Vectors])
def model(request, transactional_db, world, settings):
    """Return a read model of the world that has followed everything."""
    settings.CORECUBE_BM25 = settings.CORECUBE_VECTORS = True
    wait_for_others()
    keep_up()
    return request.param()


def part_of(document):
    return document.int >> 120


def differing(model, document):
    """Return whether the read model and the database differ in a part of the documents."""
    follower = model.follower()
    build, part = follower.folder.current, part_of(document)
    ids = [it for it in Document.objects.values_list("pk", flat=True) if part_of(it) == part]
    return sorted(follower.held(build, part)) != sorted(follower.stored(build, ids))


def reconciled(model, document):
    return model.follower().reconcile(part_of(document))


def commit_of(model):
    return look(model.follower().folder.current / model.commit)


@pytest.fixture
def document(world):
    return Document.objects.filter(connection=world.runbooks).order_by("pk").first().pk


def test_what_the_database_has_otherwise_is_replaced(model, document):
    model.change(document)
    assert differing(model, document)
    assert reconciled(model, document) == 1
    assert not differing(model, document)
    assert reconciled(model, document) == 0


def test_what_is_missing_is_put_in(model, document):
    follower = model.follower()
    model.lose(follower.folder.current, document, follower.content().position)
    assert differing(model, document)
    assert reconciled(model, document) == 1
    assert not differing(model, document)


def test_what_the_database_does_not_have_is_taken_out(model):
    follower = model.follower()
    before = follower.content()
    model.invent(follower.folder.current, _STRANGER, before.position)
    assert follower.content().chunks == before.chunks + 1
    assert reconciled(model, _STRANGER) == 1
    assert follower.content() == before


def test_what_is_there_twice_is_there_once_afterwards(model):
    follower = model.follower()
    before = follower.content()
    for _ in range(2):
        model.invent(follower.folder.current, _STRANGER, before.position)
    assert reconciled(model, _STRANGER) == 1
    assert follower.content() == before


def test_nothing_is_written_where_all_is_equal(model, capsys):
    before = commit_of(model)
    call_command(model.command, "reconcile")
    assert "Compared: 0 documents replaced." in capsys.readouterr().out
    assert commit_of(model) == before


def test_a_change_that_is_yet_to_be_followed_is_left_to_following(model, world, monkeypatch):
    monkeypatch.setattr("retrieval.ingest.completion.keep_up", lambda: True)
    write(world, "lamps.md", "# Lamps\n\nA lamp burns oil.\n")
    sync_connection(world.runbooks)
    new = Document.objects.get(title="Lamps").pk
    before = commit_of(model)
    assert differing(model, new)
    assert reconciled(model, new) == 0
    assert commit_of(model) == before


def test_a_worker_compares_the_part_whose_turn_it_is(model, document, monkeypatch, caplog):
    model.change(document)
    monkeypatch.setattr(worker, "time", lambda: part_of(document) * worker._PART_SECONDS)
    monkeypatch.setattr(worker._stopping, "wait", lambda _: worker._stopping.set())
    worker._stopping.clear()
    worker._follow_until_stopped()
    assert not differing(model, document)
    assert f"{model.command}.reconciled documents=1 part={part_of(document)}" in caplog.text
    assert "No entry names" not in caplog.text


def test_nothing_is_compared_while_another_process_writes(model, document):
    follower = model.follower()
    with follower.folder.locked():
        assert follower.reconcile(part_of(document)) is None
    assert outbox.lag(follower.content().position).transactions == 0
