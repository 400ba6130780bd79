"""Texts longer than a model's input: read in overlapping windows and pooled, beside short ones that do not change."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.encoders import load_encoder
from retrieval.encoders.catalog import Precision, known_model
from retrieval.encoders.pooling import overlapping, window_pooling
from retrieval.errors import ModelMissingError

# [CLS] and [SEP] leave room for six tokens of eight; two windows share one.
LONG = "alpha alpha alpha alpha alpha alpha beta beta beta"
FIRST, LAST = "alpha alpha alpha alpha alpha alpha", "alpha beta beta beta"


@given(st.lists(st.integers()), st.integers(2, 20), st.integers(0, 1))
def test_parts_hold_every_token_and_begin_with_the_end_of_the_one_before(tokens, size, overlap):
    parts = overlapping(tokens, size, overlap)
    assert [token for place, part in enumerate(parts) for token in part[overlap if place else 0 :]] == tokens
    assert all(len(part) <= size for part in parts)
    assert all(a[len(a) - overlap :] == b[:overlap] for a, b in itertools.pairwise(parts))


def test_windows_are_weighted_by_their_tokens_and_one_alone_stays_as_it_is():
    vectors = np.array([[0.6, 0.8], [1, 0], [0, 1]], np.float32)
    # Three and four tokens: (3, 4) at unit length.
    pooled = window_pooling(vectors, [[5], [3, 4]])
    assert pooled[0].tolist() == vectors[0].tolist()
    assert pooled[1] == pytest.approx([0.6, 0.8])
    assert window_pooling(vectors[:0], []).shape == (0, 2)


@pytest.mark.parametrize("pooling", ["cls", "mean"])
@pytest.mark.parametrize("batch_tokens", [0, 1000])
def test_a_long_text_is_the_mean_of_its_windows(make_model, pooling, batch_tokens):
    encoder = load_encoder(make_model(pooling=pooling, batch_tokens=batch_tokens))
    first, last = encoder.encode_documents([FIRST, LAST])
    mean = 8 * first + 6 * last  # with [CLS] and [SEP]
    together = encoder.encode_documents(["beta", LONG, FIRST])
    np.testing.assert_allclose(together[1], mean / np.linalg.norm(mean), rtol=1e-5)
    np.testing.assert_array_equal(together[2], first)
    assert encoder.count_windows(["beta", LONG, FIRST]) == [1, 2, 1]


def test_a_long_text_has_the_vectors_of_all_its_tokens(make_model):
    encoder = load_encoder(make_model())
    (vectors,), parts = encoder.token_vectors([LONG]), encoder.token_vectors([FIRST, LAST])
    np.testing.assert_array_equal(vectors, np.concatenate(parts))


def test_a_long_passage_is_read_in_parts_beside_the_others(make_model):
    encoder = load_encoder(make_model(pooling="mean", max_tokens=8))
    # Without a title there is room for six tokens. The last part shares a run with the passage after it.
    first, second, after = (
        encoder.encode_passages("", [LONG, "beta beta"])[0],
        *encoder.encode_passages("", [LAST, "beta beta"]),
    )
    mean = 6 * encoder.encode_passages("", [FIRST])[0] + 4 * second
    np.testing.assert_allclose(first, mean / np.linalg.norm(mean), rtol=1e-5)
    np.testing.assert_allclose(encoder.encode_passages("", [LONG, "beta beta"])[1], after, rtol=1e-6)


def test_the_default_model_finds_an_answer_in_the_tail():
    from django.conf import settings

    try:
        encoder = load_encoder(
            settings.CORECUBE_MODELS_DIR / known_model("bge-small-en-v1.5").directory_name(Precision.INT8)
        )
    except ModelMissingError as error:
        pytest.skip(str(error))
    chapter = (
        "The harbour office lists the berths, the cranes and the tariffs of the northern quay for the season. " * 26
    )
    tail = "The warranty of the bilge pump lasts eighteen months and covers the impeller but not the seals. " * 2
    question = encoder.encode_query("How long is the bilge pump under warranty?")
    whole, without, other = encoder.encode_documents([chapter + tail, chapter, tail])
    assert encoder.count_windows([chapter + tail]) == [2]
    # Cut at the limit, the chapter would be as if the tail were not there.
    assert question @ whole > question @ without + 0.03
    assert question @ other > question @ whole
