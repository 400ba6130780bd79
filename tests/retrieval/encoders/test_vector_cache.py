"""Keeping the vectors of sentences."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.encoders.vector_cache import SentenceEncoder, VectorCache
from tests.fakes import HashEncoder

TEXTS = st.lists(st.sampled_from("abcdefg"), max_size=6)


class Counting(HashEncoder):
    """An encoder that notes what it is asked to encode."""

    def __init__(self, weights="one"):
        super().__init__()
        self.named, self.encoded = weights, []

    @property
    def weights(self):
        return self.named

    def encode_documents(self, texts):
        self.encoded += texts
        return super().encode_documents(texts)


@given(st.lists(TEXTS, max_size=8), st.integers(1, 5))
def test_what_is_kept_changes_no_vector_and_stays_within_its_bound(calls, entries):
    cache, plain = VectorCache(entries), HashEncoder()
    encoder = SentenceEncoder(plain, cache)
    for texts in calls:
        vectors = encoder.encode_documents(texts)
        assert vectors.shape == (len(texts), plain.dim)
        assert np.array_equal(
            vectors, np.array([plain.encode_documents([it])[0] for it in texts]).reshape(vectors.shape)
        )
        assert len(cache) <= entries


def test_each_text_is_encoded_once():
    counting = Counting()
    encoder = SentenceEncoder(counting, VectorCache(10))
    encoder.encode_documents(["a", "b", "a"])
    encoder.encode_documents(["b", "c"])
    assert counting.encoded == ["a", "b", "c"]


def test_vectors_of_other_weights_are_others():
    cache, other = VectorCache(10), Counting("two")
    SentenceEncoder(Counting("one"), cache).encode_documents(["a"])
    SentenceEncoder(other, cache).encode_documents(["a"])
    assert other.encoded == ["a"]


def test_no_text_is_kept():
    cache = VectorCache(10)
    SentenceEncoder(HashEncoder(), cache).encode_documents(["zanzibar"])
    assert "zanzibar" not in str(list(cache._values))


def test_a_kept_vector_cannot_be_written_to():
    cache = VectorCache(1)
    with pytest.raises(ValueError, match="read-only"):
        cache.put("a", np.zeros(3, np.float32))[0] = 1.0


def test_many_threads_get_the_right_vectors_and_the_bound_holds():
    cache, plain = VectorCache(5), HashEncoder()
    encoder = SentenceEncoder(plain, cache)
    asked = [[f"text {number % 12}", f"text {number % 7}"] for number in range(300)]
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(encoder.encode_documents, asked))
    assert all(np.array_equal(it, plain.encode_documents(texts)) for it, texts in zip(found, asked, strict=True))
    assert len(cache) == 5
