"""Vectors in statements."""

import numpy as np
import pytest
from django.db import connection
from pgvector import HalfVector

from retrieval.index.reading import vector_text


def test_every_half_float_is_told_from_every_other():
    halves = np.arange(2**16, dtype=np.uint16).view(np.float16)
    halves = halves[np.isfinite(halves)]
    read = np.array([float(it) for it in vector_text(halves.astype(np.float32))[1:-1].split(",")])
    np.testing.assert_array_equal(read.astype(np.float16), halves)


@pytest.mark.django_db
def test_the_server_reads_the_same_vector_as_from_all_digits():
    vector = np.random.default_rng(3).normal(size=384).astype(np.float32) / 20
    with connection.cursor() as cursor:
        cursor.execute("SELECT %s::halfvec = %s::halfvec", [vector_text(vector), HalfVector(vector).to_text()])
        assert cursor.fetchone() == (True,)


def test_it_is_shorter_than_all_digits():
    vector = np.random.default_rng(3).normal(size=384).astype(np.float32) / 20
    assert len(vector_text(vector)) < 0.6 * len(HalfVector(vector).to_text())
