"""Learned sparse vectors: the arithmetic by hand, the model's limits, and what is no such model."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from retrieval.encoders.manifest import read_any_manifest
from retrieval.encoders.sparse_encoder import heaviest, load_sparse_encoder, splade_weights
from retrieval.errors import EncoderError, ModelMissingError
from tests.word_models import write_sparse_model

WORDS = ("undo", "rollback", "queue")


def test_a_words_weight_is_the_logarithm_of_its_greatest_logit():
    logits = np.array([[1.0, -4.0, 0.5], [3.0, -1.0, 0.0], [9.0, 9.0, 9.0]], np.float32)
    # The third token is padding: ln(1 + 3), ln(1 + 0), ln(1 + 0.5).
    weights = splade_weights(logits, np.array([1, 1, 0]))
    assert weights == pytest.approx([math.log(4), 0, math.log(1.5)])


def test_the_heaviest_words_are_kept_in_the_vocabularys_order():
    vector = heaviest(np.array([0.5, 0.0, 2.0, 0.5], np.float32), 2)
    assert (vector.places, vector.weights) == ((0, 2), (0.5, 2.0))
    assert vector.to_text() == "{1:0.5,3:2}/4"


@given(arrays.arrays(np.float32, st.integers(1, 30), elements=st.floats(0, 10, width=32)), st.integers(1, 30))
def test_what_is_kept_weighs_at_least_what_is_left_out(weights, limit):
    vector = heaviest(weights, limit)
    assert len(vector.places) == min(limit, int((weights > 0).sum()))
    assert list(vector.places) == sorted(vector.places)
    left = np.delete(weights, vector.places)
    assert not vector.weights or not len(left) or min(vector.weights) >= left.max()


def test_a_model_gives_a_text_its_words_and_those_it_stands_for(tmp_path):
    places = write_sparse_model(tmp_path / "tiny-sparse", WORDS, also={"rollback": ["undo"]})
    encoder = load_sparse_encoder(tmp_path / "tiny-sparse")
    vector = encoder.encode_query("Rollback rollback")
    assert vector.places == (places["undo"], places["rollback"])
    assert vector.weights == pytest.approx((1, 1))
    assert [it.places for it in encoder.encode_documents(["queue", "nothing"])] == [(places["queue"],), ()]


def test_chunks_and_queries_keep_as_many_words_as_their_limits(tmp_path):
    write_sparse_model(tmp_path / "tiny-sparse", WORDS, max_terms=2, query_terms=1)
    encoder = load_sparse_encoder(tmp_path / "tiny-sparse")
    assert len(encoder.encode_query("undo rollback queue").places) == 1
    assert len(encoder.encode_documents(["undo rollback queue"])[0].places) == 2


@pytest.mark.parametrize("changes", [{"max_terms": 1001}, {"max_terms": 0}, {"query_terms": 0}, {"vocabulary": 0}])
def test_a_manifest_beyond_what_an_index_takes_is_refused(tmp_path, changes):
    with pytest.raises(ValueError, match="vocabulary"):
        write_sparse_model(tmp_path / "tiny-sparse", WORDS, **changes)


def test_what_is_no_sparse_model_is_refused(tmp_path, make_model):
    with pytest.raises(EncoderError, match="not 'sparse'"):
        load_sparse_encoder(make_model())
    with pytest.raises(ModelMissingError):
        load_sparse_encoder(tmp_path / "none")
    write_sparse_model(tmp_path / "tiny-sparse", WORDS, vocabulary=99)
    with pytest.raises(EncoderError, match="not 99 words"):
        load_sparse_encoder(tmp_path / "tiny-sparse")


def test_its_manifest_is_one_of_a_kind(tmp_path):
    write_sparse_model(tmp_path / "tiny-sparse", WORDS)
    assert read_any_manifest(tmp_path / "tiny-sparse").kind == "sparse"
