"""Shortened vectors, and vectors of passages in a reading of the whole document."""

import numpy as np
import pytest

from corecube.errors import ConfigError
from retrieval.encoders import load_encoder


def test_vectors_are_cut_where_the_model_allows_it(make_model):
    encoder = load_encoder(make_model(min_dim=2), dim=2)
    whole = load_encoder(make_model(min_dim=2))
    assert (encoder.dim, whole.dim) == (2, 3)
    long, short = whole.encode_query("alpha betas"), encoder.encode_query("alpha betas")
    assert np.allclose(short, long[:2] / np.linalg.norm(long[:2]), atol=1e-6)
    assert encoder.encode_documents(["alpha", "beta"]).shape == (2, 2)
    assert encoder.weights != whole.weights


@pytest.mark.parametrize(
    ("smallest", "dim", "words"), [(0, 2, "not support fewer"), (2, 1, "2 to 3"), (2, 4, "2 to 3")]
)
def test_a_cut_that_the_model_is_not_for_is_an_error(make_model, smallest, dim, words):
    with pytest.raises(ConfigError, match=words):
        load_encoder(make_model(min_dim=smallest), dim=dim)


def test_a_passage_is_pooled_from_its_own_tokens_in_the_whole_run(make_model):
    encoder = load_encoder(make_model(pooling="mean", max_tokens=16))
    found = encoder.encode_passages("query", ["alpha", "beta beta"])
    # Each state is its row of TABLE plus the sum over the run: CLS query alpha beta beta SEP.
    total = np.array([1, 0, 0]) + [0, 0, 1] + [2, 0, 0] + 2 * np.array([0, 0, 3]) + [0, 1, 0]
    alpha, beta = np.array([2, 0, 0]) + total, np.array([0, 0, 3]) + total
    expected = [alpha / np.linalg.norm(alpha), beta / np.linalg.norm(beta)]
    assert np.allclose(found, expected, atol=1e-6)


def test_neighbours_count_only_within_a_run(make_model):
    encoder = load_encoder(make_model(pooling="mean", max_tokens=8))
    # The title has one token, CLS and SEP take two: five tokens are left.
    alone = encoder.encode_passages("query", ["alpha beta alpha"])
    apart = encoder.encode_passages("query", ["alpha beta alpha", "beta beta beta"])
    assert np.allclose(apart[0], alone[0], atol=1e-6)
    together = encoder.encode_passages("query", ["alpha beta alpha", "beta"])
    assert not np.allclose(together[0], alone[0], atol=1e-3)


def test_a_passage_beyond_the_window_is_cut(make_model):
    encoder = load_encoder(make_model(pooling="mean", max_tokens=8))
    long = encoder.encode_passages("", ["alpha " * 50])
    assert np.allclose(np.linalg.norm(long, axis=1), 1, atol=1e-6)


def test_a_model_that_pools_its_first_token_says_why_it_cannot(make_model):
    assert "no mean pooling" in load_encoder(make_model()).passages_problem
    assert load_encoder(make_model(pooling="mean")).passages_problem == ""
