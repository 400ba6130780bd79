"""The stored vectors of hits, in the hits' order."""

import numpy as np
import pytest

from retrieval.index.pool import vectors_of
from retrieval.models import Embedding
from retrieval.types import ChunkId, Hit, ScoreType


@pytest.fixture
def stored(index):
    """What the store has, by chunk."""
    rows = Embedding.objects.filter(index_id=index.id).order_by("document_id", "ordinal")
    return {ChunkId(row.document_id, row.ordinal): row for row in rows}


def hits(chunks):
    return tuple(Hit(chunk, 1.0, ScoreType.RRF) for chunk in chunks)


def test_vectors_come_in_the_order_of_the_hits(stored, index, alice):
    chunks = sorted(stored, key=lambda chunk: (chunk.ordinal, str(chunk.document_id)), reverse=True)
    found = vectors_of(hits(chunks), index=index, scope=alice, timeout_seconds=5)
    assert (found.dtype, found.shape) == (np.float32, (len(stored), index.dim))
    assert np.array_equal(found, np.stack([stored[chunk].vector.to_numpy() for chunk in chunks]).astype(np.float32))


def test_what_is_out_of_scope_or_gone_is_zeros(stored, index, bob, world):
    gone = ChunkId(next(iter(stored)).document_id, 10_000)
    found = vectors_of(hits([gone, *stored]), index=index, scope=bob, timeout_seconds=5)
    seen = [False, *(row.connection_id == world.runbooks.pk for row in stored.values())]
    assert any(seen)
    assert not all(seen[1:])
    assert found.any(axis=1).tolist() == seen


def test_of_nothing_there_are_no_vectors(index, alice):
    assert vectors_of((), index=index, scope=alice, timeout_seconds=5).shape == (0, index.dim)
