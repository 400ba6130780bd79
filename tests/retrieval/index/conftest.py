"""Scopes, and more rows than the shared world has."""

from contextlib import contextmanager
from uuid import UUID, uuid4

import numpy as np
import pytest
from django.db import connection as database
from django.utils import timezone
from pgvector import HalfVector

from corecube.access import scope_for
from retrieval.index import active
from retrieval.index.statements import statement
from retrieval.index.writer import create_vector_index
from retrieval.models import Document


@pytest.fixture
def unit(index):
    """Return random unit vectors of the index's dimension, shape (count, dim)."""

    def draw(seed, count=1):
        vectors = np.random.default_rng(seed).standard_normal((count, index.dim))
        return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)

    return draw


@pytest.fixture
def index(world):
    return active.active_index(active.encoder())


@pytest.fixture
def alice(world):
    return scope_for(world.principal("alice"))


@pytest.fixture
def bob(world):
    return scope_for(world.principal("bob"))


@contextmanager
def rebuilding(index):
    """Give an embedding index the HNSW index of its scan once the block has written vectors, many at once."""
    with database.cursor() as cursor:
        cursor.execute(statement("upkeep/drop_hnsw") % {"index": index.id})
        yield cursor
    create_vector_index(index)


def rebuild(index):
    """Give an embedding index the HNSW index of its scan in place of the one that it has."""
    with rebuilding(index):
        pass


def copy_embeddings(index, rows):
    """Add rows of (document, ordinal, connection, vector) to an embedding index, and build its HNSW index again."""
    columns = "document_id, ordinal, index_id, connection_id, vector"
    with rebuilding(index) as cursor, cursor.copy(f"COPY retrieval_embedding ({columns}) FROM STDIN") as copy:
        for document, ordinal, connection, vector in rows:
            copy.write_row((document, ordinal, index.id, connection, HalfVector(vector).to_text()))


@pytest.fixture
def many(world, index, unit):
    """Add 2,000 random vectors, half in the runbooks and half in the ledger, and return them."""
    vectors = unit(7, 2000)
    connections = (world.runbooks.pk, world.ledger.pk)
    copy_embeddings(
        index, [(uuid4(), number, connections[number % 2 == 0], vector) for number, vector in enumerate(vectors)]
    )
    return vectors


@pytest.fixture
def common(world):
    """Add 64 documents with one chunk each, ids evenly spread, all with one word; every eighth has it in its title."""
    Document.objects.bulk_create(
        Document(
            id=UUID(int=number << 122),
            connection=world.runbooks,
            external_id=f"common {number}",
            source_type="text",
            byte_size=0,
            synced_at=timezone.now(),
        )
        for number in range(64)
    )
    with database.cursor() as cursor:
        cursor.execute(
            "INSERT INTO retrieval_chunk"
            " (document_id, ordinal, connection_id, text, heading_path, token_count, content_hash, search)"
            " SELECT (lpad(to_hex(number * 4), 2, '0') || repeat('0', 30))::uuid, 0, %s, '', '{}', 1, '',"
            " setweight(to_tsvector('simple', CASE WHEN number %% 8 = 0 THEN 'common' ELSE 'other' END), 'A')"
            " || setweight(to_tsvector('simple', 'common'), 'C')"
            " FROM generate_series(0, 63) AS number",
            [world.runbooks.pk],
        )
