"""Token vectors: quantised within half a step, marked and filled up as the model was trained, MaxSim by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from retrieval.encoders.late_interaction import TokenVectors, load_late_encoder, max_sim
from retrieval.errors import EncoderError
from tests.word_models import write_late_model

VECTORS = {"alpha": (1, 0, 0), "beta": (0, 1, 0), "both": (3, 4, 0)}


@given(arrays.arrays(np.float32, (5, 8), elements=st.floats(-1, 1, width=32)))
def test_a_component_is_wrong_by_half_a_step_at_most(vectors):
    found = TokenVectors.of(vectors)
    whole = found.steps * found.scales[:, None]
    assert np.all(np.abs(whole - vectors) <= np.abs(vectors).max(axis=1, keepdims=True) / 254 + 1e-6)


def test_it_is_stored_in_a_byte_a_component_and_read_again():
    made = TokenVectors.of(np.array([[0.6, -0.8], [0.0, 0.0]], np.float32))
    steps, scales = made.to_bytes()
    assert (len(steps), len(scales)) == (4, 8)
    read = TokenVectors.read(steps, scales, 2)
    assert read.steps.tolist() == [[95, -127], [0, 0]]
    assert np.array_equal(read.scales, made.scales)
    with pytest.raises(ValueError, match="different tokens"):
        TokenVectors.read(steps, scales[:4], 2)


def test_max_sim_by_hand_and_as_with_whole_vectors():
    query = np.array([[1, 0, 0], [0, 1, 0]], np.float32)
    text = np.array([[0.6, 0.8, 0], [0, 0, 1]], np.float32)
    # Best cosines: 0.6 with the first token, 0.8 with the first token; their mean is 0.7.
    assert TokenVectors.of(text).max_sim(query) == pytest.approx(0.7, abs=0.003)
    assert TokenVectors.of(text).max_sim(query) == pytest.approx(max_sim(query, text), abs=0.003)
    assert TokenVectors.of(text[:0]).max_sim(query) == 0.0


def test_queries_are_marked_and_filled_up_and_documents_marked(tmp_path):
    encoder = load_late_encoder(write_late_model(tmp_path / "tiny-late", VECTORS))
    # CLS [Q] alpha SEP, then masks up to eight; every mark has the vector (0, 0, 1).
    assert encoder.query_vectors("alpha").tolist() == [[0, 0, 1], [0, 0, 1], [1, 0, 0], *[[0, 0, 1]] * 5]
    (document,) = encoder.document_vectors(["both beta"])
    assert document == pytest.approx(np.array([[0, 0, 1], [0, 0, 1], [0.6, 0.8, 0], [0, 1, 0], [0, 0, 1]]))


def test_a_model_without_marks_gets_none(tmp_path):
    directory = write_late_model(
        tmp_path / "tiny-late", VECTORS, query_mark=-1, document_mark=-1, query_tokens=0, mask_token=-1
    )
    assert len(load_late_encoder(directory).query_vectors("alpha")) == 3


def test_an_embedding_model_gives_its_own_tokens_vectors(make_model):
    encoder = load_late_encoder(make_model())
    assert [len(it) for it in encoder.document_vectors(["alpha beta", "alpha"])] == [2, 1]
    assert encoder.query_vectors("alpha").shape == (1, 3)


def test_what_gives_no_token_vectors_is_refused(make_pair_model, tmp_path):
    with pytest.raises(EncoderError, match="cross-encoder"):
        load_late_encoder(make_pair_model())
    with pytest.raises(ValueError, match="mask_token"):
        write_late_model(tmp_path / "tiny-late", VECTORS, mask_token=-1)
