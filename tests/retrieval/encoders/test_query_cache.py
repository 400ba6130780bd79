"""Keeping the vectors of queries."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from retrieval.encoders.vector_cache import QueryCache, VectorCache
from tests.fakes import HashEncoder


class Counting:
    """An encoder that counts what it is asked to encode."""

    def __init__(self, weights="one"):
        self._encoder = HashEncoder()
        self.name, self.weights, self.encoded = "counting", weights, []

    def encode_query(self, text):
        self.encoded.append(text)
        return self._encoder.encode_query(text)


@pytest.fixture
def encoder():
    return Counting()


def test_a_query_that_was_asked_before_is_not_encoded_again(encoder, anywhere):
    cache = QueryCache(VectorCache(10, 60, anywhere))
    first = cache.encode("rollback", encoder=encoder, principal="alice")
    again = cache.encode("rollback", encoder=encoder, principal="alice")
    assert (first.was_cached, again.was_cached) == (False, True)
    assert np.array_equal(again.vector, HashEncoder().encode_query("rollback"))
    assert encoder.encoded == ["rollback"]


def test_nobody_learns_what_someone_else_asked(encoder, anywhere):
    cache = QueryCache(VectorCache(10, 60, anywhere))
    cache.encode("rollback", encoder=encoder, principal="alice")
    assert not cache.encode("rollback", encoder=encoder, principal="bob").was_cached
    assert encoder.encoded == ["rollback", "rollback"]


def test_vectors_of_other_weights_are_others(encoder, anywhere):
    cache = QueryCache(VectorCache(10, 60, anywhere))
    cache.encode("rollback", encoder=encoder, principal="alice")
    assert not cache.encode("rollback", encoder=Counting("two"), principal="alice").was_cached


def test_the_query_asked_longest_ago_is_forgotten_first(encoder):
    cache = QueryCache(VectorCache(2))
    for text in ("a", "b", "a", "c"):
        cache.encode(text, encoder=encoder, principal="alice")
    assert len(cache.cache) == 2
    assert cache.encode("a", encoder=encoder, principal="alice").was_cached
    assert not cache.encode("b", encoder=encoder, principal="alice").was_cached


def test_a_kept_vector_cannot_be_written_to(encoder):
    cache = QueryCache(VectorCache(2))
    for _ in range(2):
        with pytest.raises(ValueError, match="read-only"):
            cache.encode("a", encoder=encoder, principal="alice").vector[0] = 1.0


def test_no_text_is_kept(encoder):
    cache = QueryCache(VectorCache(2))
    cache.encode("zanzibar", encoder=encoder, principal="alice")
    assert "zanzibar" not in str(list(cache.cache._values))
    assert "zanzibar" not in repr(cache)


def test_a_failure_is_not_kept(encoder, anywhere):
    cache = QueryCache(VectorCache(2, 60, anywhere))
    encode = encoder.encode_query
    encoder.encode_query = None
    with pytest.raises(TypeError):
        cache.encode("a", encoder=encoder, principal="alice")
    encoder.encode_query = encode
    assert not cache.encode("a", encoder=encoder, principal="alice").was_cached


def test_many_threads_get_the_right_vectors_and_the_bound_holds(encoder):
    cache = QueryCache(VectorCache(5))
    texts = [f"query {number % 12}" for number in range(600)]
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(lambda text: cache.encode(text, encoder=encoder, principal="alice").vector, texts))
    plain = HashEncoder()
    assert all(np.array_equal(vector, plain.encode_query(text)) for vector, text in zip(found, texts, strict=True))
    assert len(cache.cache) <= 5
