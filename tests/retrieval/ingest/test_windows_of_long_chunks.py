"""An index in which an earlier version cut long chunks: its next build embeds these again, and no others."""

import numpy as np
import pytest

from retrieval.errors import EncoderUnavailableError
from retrieval.index import active
from retrieval.index.embedding_index import active_row, vectors_key
from retrieval.ingest import index_tasks, indexes, reindex
from retrieval.models import Chunk, Embedding, EmbeddingIndex
from retrieval.search.request import SearchRequest
from retrieval.search.service import search
from tests.fakes import HashEncoder


class Reader(HashEncoder):
    """Reads texts to their end, in windows of as many words as it is told."""

    window = 10**6
    passages_problem = ""

    def __init__(self):
        super().__init__()
        self.read = []
        self.error = None

    def encode_documents(self, texts):
        if self.error:
            raise self.error
        self.read += texts
        return super().encode_documents(texts)

    def encode_passages(self, title, passages, **_):
        return self.encode_documents([f"{title} {passage}" for passage in passages])

    def count_windows(self, texts):
        return [-(-count // self.window) for count in self.count_tokens(texts)]


@pytest.fixture
def reader(world, monkeypatch):
    """Return the model of the world's index, which an earlier version made: it cut the longest chunk."""
    found = Reader()
    monkeypatch.setattr(active, "encoder_of", lambda _: found)
    monkeypatch.setattr(active, "encoder", lambda _=None: found)
    counts = sorted(found.count_tokens([text for _, text in embedded()]))
    found.window = counts[-2]
    (key,) = (key for key, text in embedded() if found.count_tokens([text]) == [counts[-1]])
    row_of(key).update(vector=HashEncoder().encode_query("only its beginning").tolist())
    EmbeddingIndex.objects.update(pools_windows=False)
    found.long = key
    return found


def embedded():
    """Return each chunk's key with the text that its vector is made from."""
    found = Chunk.objects.select_related("document")
    return [
        ((it.document_id, it.ordinal), f"{' > '.join((it.document.title, *it.heading_path))}\n{it.text}")
        for it in found
    ]


def row_of(key):
    return Embedding.objects.filter(document_id=key[0], ordinal=key[1])


def vectors():
    return {(it.document_id, it.ordinal): it.vector.to_list() for it in Embedding.objects.all()}


def test_a_new_index_needs_no_such_build(world):
    assert active_row().pools_windows
    assert reindex.unfinished_indexes() == []


def test_only_the_long_chunk_is_embedded_again(reader):
    before = vectors()
    assert reindex.unfinished_indexes() == [active_row()]
    index_tasks.build(active_row().pk)
    text = dict(embedded())[reader.long]
    assert reader.read == [text]
    after = vectors()
    assert {key for key in after if after[key] != before[key]} == {reader.long}
    assert np.allclose(after[reader.long], HashEncoder().encode_query(text), atol=1e-3)
    assert reindex.unfinished_indexes() == []


def test_searches_go_on_with_the_previous_vectors_until_then(reader, world):
    def cosine():
        hits = search(SearchRequest(text=dict(embedded())[reader.long]), principal=world.principal("alice")).hits
        return next(hit.signals["cosine"] for hit in hits if tuple(hit.chunk_id) == reader.long)

    before = cosine()
    reindex.build_index(active_row())
    assert cosine() > 0.9 > before


def test_a_build_that_failed_begins_again(reader):
    reader.error = EncoderUnavailableError("down")
    with pytest.raises(EncoderUnavailableError):
        reindex.build_index(active_row())
    assert (active_row().pools_windows, active_row().problem) == (False, "down")
    reader.error = None
    indexes.build_again(active_row(), actor=None)
    assert reindex.build_index(active_row())
    assert active_row().pools_windows


def test_where_documents_are_read_as_a_whole_the_neighbours_are_read_too(reader):
    EmbeddingIndex.objects.update(mode="late")
    reindex.build_index(active_row())
    assert len(reader.read) == Chunk.objects.filter(document_id=reader.long[0]).count()


def test_vectors_that_were_cut_are_not_copied_into_a_new_index(reader):
    row = active_row()
    assert vectors_key(row) != vectors_key(EmbeddingIndex(**vectors_key(row) | {"pools_windows": True}))
