"""Another walk over the same vectors: an index beside the old one that takes no model to build."""

from dataclasses import dataclass

import pytest
from django.db import connection

from corecube.errors import ConfigError
from corecube.models import AuditEvent
from retrieval.errors import IndexStateError
from retrieval.index import active
from retrieval.index.embedding_index import active_row, same_model
from retrieval.index.scans import USUAL_OVERSAMPLE, ScanChoice
from retrieval.ingest import indexes, reindex
from retrieval.ingest.sync import sync_connection
from retrieval.models import Chunk, Embedding
from retrieval.search.request import SearchRequest
from retrieval.search.service import search
from tests.fakes import HashEncoder

DEFINITION = "SELECT indexdef FROM pg_indexes WHERE indexname = %s"


class Counting(HashEncoder):
    """Counts what it embeds; its first 16 components may stand for the whole."""

    min_dim = 16

    def __init__(self):
        super().__init__()
        self.embedded = 0

    def encode_documents(self, texts):
        self.embedded += len(texts)
        return super().encode_documents(texts)


@dataclass(frozen=True)
class Fixed:
    """A choice that is loaded already."""

    encoder: HashEncoder
    source: str = "local:hash"

    def load(self):
        return self.encoder


@pytest.fixture
def encoder(world, monkeypatch):
    found = Counting()
    monkeypatch.setattr(active, "encoder_of", lambda row: same_model(row, found) and found)
    monkeypatch.setattr(active, "encoder", lambda *_: found)
    return found


@pytest.fixture
def begin(encoder):
    def begin(scan, dim=0, oversample=0.0):
        choice = ScanChoice(scan, dim, oversample)
        return indexes.start_index(Fixed(encoder), actor=None, mode="chunk_first", scan=choice, queue=False)

    return begin


def definition(row):
    with connection.cursor() as cursor:
        cursor.execute(DEFINITION, [f"retrieval_embedding_hnsw_{row.pk}"])
        return cursor.fetchone()[0]


@pytest.mark.parametrize(
    ("scan", "dim", "operators"),
    [
        ("int8", 0, "bit_hamming_ops"),
        ("binary", 0, "bit_hamming_ops"),
        ("prefix", 16, "halfvec(16)) halfvec_cosine_ops"),
    ],
)
def test_an_index_with_another_scan_copies_the_vectors_and_serves(world, encoder, begin, scan, dim, operators):
    row = begin(scan, dim)
    assert (row.scan, row.scan_dim, row.oversample) == (scan, dim, USUAL_OVERSAMPLE[scan])
    assert operators in definition(row)
    assert f"WHERE (index_id = {row.pk})" in definition(row)
    assert reindex.build_index(row)
    assert encoder.embedded == 0
    old, new = (
        {(it.document_id, it.ordinal): it.vector.to_list() for it in Embedding.objects.filter(index_id=pk)}
        for pk in (active_row().pk, row.pk)
    )
    assert new == old
    indexes.switch_to(row, actor=None)
    outcome = search(
        SearchRequest(text="rollback staging database", overrides={"dense.exact_below": 0}),
        principal=world.principal("alice"),
    )
    [note] = [it for span in outcome.state.trace for it in span.notes if it.code == "dense_hnsw"]
    assert f"by {scan}, rescored with full vectors" in note.text
    assert outcome.hits
    assert AuditEvent.objects.get(action="index.started").details["scan"] == scan


def test_a_sync_embeds_once_for_both(world, encoder, begin):
    row = begin("binary")
    reindex.build_index(row)
    (world.root / "runbooks" / "new.md").write_text("# Tape\n\nThe tape robot needs grease in spring.\n")
    sync_connection(world.runbooks)
    assert encoder.embedded == 1
    assert Embedding.objects.filter(index_id=row.pk).count() == Chunk.objects.count()


def test_what_the_other_index_lacks_is_embedded(world, encoder, begin):
    row = begin("binary")
    lacking = Embedding.objects.filter(index_id=active_row().pk).first()
    Embedding.objects.filter(document_id=lacking.document_id).delete()
    assert reindex.build_index(row)
    assert encoder.embedded == Chunk.objects.filter(document_id=lacking.document_id).count()


def test_the_same_walk_is_refused_and_so_is_a_prefix_that_the_model_does_not_allow(world, encoder, begin):
    with pytest.raises(IndexStateError, match="already"):
        begin("halfvec")
    with pytest.raises(ConfigError, match="16 to 63 dimensions"):
        begin("prefix", 8)
    reindex.build_index(row := begin("binary"))
    indexes.switch_to(row, actor=None)
    indexes.drop(indexes.embedding_index.all_indexes()[1], actor=None)
    with pytest.raises(IndexStateError, match="already"):
        begin("binary")
    assert begin("binary", oversample=12).oversample == 12
