from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from retrieval.encoders import load_encoder
from retrieval.errors import EncoderError, ModelMissingError

TEXTS = ["alpha", "alpha beta alpha beta", "", "betas", "alpha beta", "nothing known here"]


def unit(*numbers):
    return np.array(numbers) / np.linalg.norm(numbers)


def test_cls_pooling_gives_the_first_state_at_unit_length(make_model):
    # [CLS] alpha beta [SEP] sums to (3, 1, 3); the state of [CLS] is (1, 0, 0) more.
    vector = load_encoder(make_model(pooling="cls")).encode_documents(["alpha beta"])[0]
    np.testing.assert_allclose(vector, unit(4, 1, 3), rtol=1e-6)


def test_mean_pooling_gives_the_mean_state_at_unit_length(make_model):
    # The mean state is the sum plus a quarter of it: the direction of (3, 1, 3).
    vector = load_encoder(make_model(pooling="mean")).encode_documents(["alpha beta"])[0]
    np.testing.assert_allclose(vector, unit(3, 1, 3), rtol=1e-6)


def test_token_vectors_are_the_texts_own_tokens_at_unit_length(make_model):
    # [CLS] alpha beta [SEP] sums to (3, 1, 3): alpha's state is (2, 0, 0) more, beta's (0, 0, 3) more.
    vectors = load_encoder(make_model(query_prefix="query ")).token_vectors(["alpha beta", ""])
    np.testing.assert_allclose(vectors[0], [unit(5, 1, 3), unit(3, 1, 6)], rtol=1e-6)
    assert vectors[1].shape == (0, 3)


@pytest.mark.parametrize("threads", [1, 3])
def test_token_vectors_come_in_input_order(make_model, threads):
    encoder = load_encoder(make_model(), threads=threads)
    assert [len(vectors) for vectors in encoder.token_vectors(TEXTS)] == [1, 4, 0, 2, 2, 3]


def test_without_normalisation_vectors_keep_their_length(make_model):
    vector = load_encoder(make_model(normalise=False)).encode_query("alpha beta")
    np.testing.assert_allclose(vector, [4, 1, 3])


def test_prefixes_are_put_before_queries_and_documents(make_model):
    encoder = load_encoder(make_model(query_prefix="query ", document_prefix="beta "))
    np.testing.assert_allclose(encoder.encode_query("alpha"), unit(4, 1, 1), rtol=1e-6)
    np.testing.assert_allclose(encoder.encode_documents(["alpha"])[0], unit(4, 1, 3), rtol=1e-6)


@pytest.mark.parametrize("pooling", ["cls", "mean"])
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("batch_tokens", [0, 12, 1000])
def test_vectors_come_in_input_order_however_texts_are_batched(make_model, pooling, threads, batch_tokens):
    alone = load_encoder(make_model(pooling=pooling), threads=1)
    expected = np.stack([alone.encode_documents([text])[0] for text in TEXTS])
    encoder = load_encoder(make_model(pooling=pooling, batch_tokens=batch_tokens), threads=threads)
    np.testing.assert_allclose(encoder.encode_documents(TEXTS), expected, rtol=1e-6)


def test_vectors_are_single_precision_of_unit_length(make_model):
    encoder = load_encoder(make_model())
    vectors = encoder.encode_documents(TEXTS)
    assert (vectors.shape, vectors.dtype) == ((len(TEXTS), 3), np.float32)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, rtol=1e-6)
    assert (encoder.encode_query("alpha").shape, encoder.encode_query("alpha").dtype) == ((3,), np.float32)


def test_no_documents_give_an_empty_matrix(make_model):
    vectors = load_encoder(make_model()).encode_documents([])
    assert (vectors.shape, vectors.dtype) == ((0, 3), np.float32)


def test_a_query_beyond_the_limit_is_cut_at_its_end(make_model):
    encoder = load_encoder(make_model(max_tokens=8))
    kept = encoder.encode_query("alpha beta alpha beta alpha beta")
    np.testing.assert_array_equal(encoder.encode_query("alpha beta alpha beta alpha beta " + "alpha " * 99), kept)


def test_many_threads_may_encode_at_once(make_model):
    encoder = load_encoder(make_model(), threads=2)
    expected = encoder.encode_documents(TEXTS)
    with ThreadPoolExecutor(8) as pool:
        for vectors in pool.map(encoder.encode_documents, [TEXTS] * 40):
            np.testing.assert_array_equal(vectors, expected)


def test_the_encoder_tells_its_name_size_and_limit(make_model):
    encoder = load_encoder(make_model())
    assert (encoder.name, encoder.dim, encoder.max_tokens) == ("tiny", 3, 8)


def test_tokens_are_counted_and_located_without_prefix(make_model):
    encoder = load_encoder(make_model(document_prefix="beta ", query_prefix="query "))
    assert encoder.count_tokens(["alpha betas", ""]) == [3, 0]
    assert encoder.token_spans("alpha betas") == [(0, 5), (6, 10), (10, 11)]


def test_a_missing_model_says_how_to_get_it(tmp_path):
    with pytest.raises(ModelMissingError, match=r"manage\.py models fetch absent"):
        load_encoder(tmp_path / "absent")


@pytest.mark.parametrize("content", [b"", b"not a network"])
def test_a_damaged_network_is_an_encoder_error(make_model, content):
    directory = make_model()
    (directory / "model.onnx").write_bytes(content)
    with pytest.raises(EncoderError, match="cannot be loaded"):
        load_encoder(directory)


def test_a_network_of_another_size_than_its_manifest_is_refused(make_model):
    with pytest.raises(EncoderError, match=r"of shape \(3,\), not 4"):
        load_encoder(make_model(dim=4))


def test_a_network_that_asks_for_more_than_texts_is_refused(make_model, make_network):
    directory = make_model()
    make_network(directory / "model.onnx", inputs=("input_ids", "attention_mask", "pixels"))
    with pytest.raises(EncoderError, match=r"\['pixels'\]"):
        load_encoder(directory)


def test_texts_share_no_run_of_a_network_without_a_mask(make_model, make_network):
    texts = ["alpha", "beta betas alpha"]
    masked = load_encoder(make_model()).encode_documents(texts)
    directory = make_model(batch_tokens=0)
    make_network(directory / "model.onnx", inputs=("input_ids",))
    np.testing.assert_allclose(load_encoder(directory).encode_documents(texts), masked, atol=1e-6)
    make_network(make_model(batch_tokens=64) / "model.onnx", inputs=("input_ids",))
    with pytest.raises(EncoderError, match="no mask"):
        load_encoder(directory)


def test_a_run_that_fails_is_an_encoder_error(make_model, make_tokenizer):
    directory = make_model()
    # The network has no row for the extra token.
    make_tokenizer(directory / "tokenizer.json", extra=("unheard",))
    encoder = load_encoder(directory)
    with pytest.raises(EncoderError, match="'tiny' failed"):
        encoder.encode_query("unheard")
    with pytest.raises(EncoderError, match="'tiny' failed"):
        encoder.encode_documents(["alpha", "unheard", "beta"])
