"""Token vectors of a model: marked and filled up as it was trained; MaxSim by hand."""

import numpy as np
import pytest

from retrieval.encoders.late_interaction import load_late_encoder, max_sim
from retrieval.errors import EncoderError
from tests.word_models import write_late_model

VECTORS = {"alpha": (1, 0, 0), "beta": (0, 1, 0), "both": (3, 4, 0)}


def test_max_sim_is_the_mean_of_each_query_tokens_best_cosine():
    query = np.array([[1, 0, 0], [0, 1, 0]], np.float32)
    text = np.array([[0.6, 0.8, 0], [0, 0, 1]], np.float32)
    # Best cosines: 0.6 with the first token, 0.8 with the first token; their mean is 0.7.
    assert max_sim(query, text) == pytest.approx(0.7)
    assert max_sim(query, text[:0]) == 0.0


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
