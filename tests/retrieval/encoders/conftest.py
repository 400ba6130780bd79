"""A model small enough to work out by hand: each token state is its row of TABLE plus the sum over the text."""

import json
import zipfile
from dataclasses import replace

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Tokenizer
from tokenizers.models import WordPiece
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer
from tokenizers.processors import TemplateProcessing

from retrieval.encoders.manifest import CrossEncoderManifest, Manifest, file_sha256, write_manifest

# Padding has a row of its own far from the others, so that padding which leaks into a text shows.
TABLE = {
    "[PAD]": (90, 90, 90),
    "[UNK]": (0, 0, 7),
    "[CLS]": (1, 0, 0),
    "[SEP]": (0, 1, 0),
    "alpha": (2, 0, 0),
    "beta": (0, 0, 3),
    "##s": (0, 5, 0),
    "query": (0, 0, 1),
}


def write_tokenizer(path, *, extra=(), **file_options):
    tokenizer = Tokenizer(WordPiece({token: row for row, token in enumerate([*TABLE, *extra])}, unk_token="[UNK]"))
    tokenizer.normalizer = BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = BertPreTokenizer()
    tokenizer.add_special_tokens(["[PAD]", "[UNK]", "[CLS]", "[SEP]"])
    marks = [(mark, tokenizer.token_to_id(mark)) for mark in ("[CLS]", "[SEP]")]
    pair = "[CLS] $A [SEP] $B:1 [SEP]:1"
    tokenizer.post_processor = TemplateProcessing(single="[CLS] $A [SEP]", pair=pair, special_tokens=marks)
    path.write_text(json.dumps(json.loads(tokenizer.to_str()) | file_options))


def write_network(path, *, rows=None, inputs=("input_ids", "attention_mask")):
    masking = [
        helper.make_node("Cast", ["attention_mask"], ["weights"], to=TensorProto.FLOAT),
        helper.make_node("Unsqueeze", ["weights", "last"], ["column"]),
        helper.make_node("Mul", ["rows", "column"], ["kept"]),
    ]
    nodes = [
        helper.make_node("Gather", ["table", "input_ids"], ["rows"]),
        *(masking if "attention_mask" in inputs else [helper.make_node("Identity", ["rows"], ["kept"])]),
        helper.make_node("ReduceSum", ["kept", "tokens"], ["sum"], keepdims=1),
        helper.make_node("Add", ["rows", "sum"], ["states"]),
    ]
    constants = {
        "table": np.array(list((TABLE | (rows or {})).values()), np.float32),
        "last": np.array([2], np.int64),
        "tokens": np.array([1], np.int64),
    }
    graph = helper.make_graph(
        nodes,
        "tiny",
        [helper.make_tensor_value_info(name, TensorProto.INT64, ["texts", "tokens_each"]) for name in inputs],
        [helper.make_tensor_value_info("states", TensorProto.FLOAT, ["texts", "tokens_each", 3])],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


TINY = Manifest(
    name="tiny",
    dim=3,
    max_tokens=8,
    pooling="cls",
    query_prefix="",
    document_prefix="",
    normalise=True,
    batch_tokens=0,
    quantisation="none",
    source="a test",
    source_sha256="0" * 64,
    licence="none",
    files={"model.onnx": "", "tokenizer.json": ""},
)


@pytest.fixture
def make_model(tmp_path):
    """Return a function that writes the tiny model's directory, with manifest fields changed as asked."""

    def make(*, rows=None, **changes):
        directory = tmp_path / "models" / "tiny"
        directory.mkdir(parents=True, exist_ok=True)
        write_tokenizer(directory / "tokenizer.json")
        write_network(directory / "model.onnx", rows=rows)
        files = {name: file_sha256(directory / name) for name in ("model.onnx", "tokenizer.json")}
        write_manifest(replace(TINY, **({"files": files} | changes)), directory)
        return directory

    return make


def write_pair_network(path, *, columns=(0, 2), flat=False, inputs=("input_ids", "attention_mask", "token_type_ids")):
    """Write a network whose outputs are sums over the text's tokens: of the chosen columns of TABLE, one each."""
    nodes = [
        helper.make_node("Gather", ["table", "input_ids"], ["rows"]),
        helper.make_node("Mul", ["attention_mask", "token_type_ids"], ["of_text"]),
        helper.make_node("Cast", ["of_text"], ["weights"], to=TensorProto.FLOAT),
        helper.make_node("Unsqueeze", ["weights", "last"], ["column"]),
        helper.make_node("Mul", ["rows", "column"], ["kept"]),
        helper.make_node("ReduceSum", ["kept", "tokens"], ["logits"], keepdims=0),
    ]
    table = np.array([[row[column] for column in columns] for row in TABLE.values()], np.float32)
    constants = {"table": table, "last": np.array([2], np.int64), "tokens": np.array([1], np.int64)}
    if flat:
        nodes[-1].output[0] = "column_of_one"
        nodes.append(helper.make_node("Squeeze", ["column_of_one", "tokens"], ["logits"]))
    shape = ["pairs"] if flat else ["pairs", len(columns)]
    graph = helper.make_graph(
        nodes,
        "tiny-pairs",
        [helper.make_tensor_value_info(name, TensorProto.INT64, ["pairs", "tokens_each"]) for name in inputs],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, shape)],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


TINY_PAIRS = CrossEncoderManifest(
    name="tiny-pairs",
    max_tokens=11,
    batch_tokens=0,
    quantisation="none",
    source="a test",
    source_sha256="0" * 64,
    licence="none",
    files={"model.onnx": "", "tokenizer.json": ""},
)


@pytest.fixture
def make_pair_model(tmp_path):
    """Return a function that writes the tiny cross-encoder's directory, with manifest fields changed as asked."""

    def make(*, network=None, **changes):
        directory = tmp_path / "models" / "tiny-pairs"
        directory.mkdir(parents=True, exist_ok=True)
        write_tokenizer(directory / "tokenizer.json")
        write_pair_network(directory / "model.onnx", **(network or {}))
        files = {name: file_sha256(directory / name) for name in ("model.onnx", "tokenizer.json")}
        write_manifest(replace(TINY_PAIRS, **({"files": files} | changes)), directory)
        return directory

    return make


@pytest.fixture
def make_tokenizer():
    return write_tokenizer


@pytest.fixture
def make_network():
    return write_network


@pytest.fixture
def make_wheel(tmp_path, monkeypatch):
    """Return a function that writes a wheel to the only place where pip may look."""
    index = tmp_path / "index"
    index.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(index))

    def make(distribution, members, *, version="1.0"):
        package = distribution.replace("-", "_")
        metadata = f"{package}-{version}.dist-info"
        path = index / f"{package}-{version}-py3-none-any.whl"
        with zipfile.ZipFile(path, "w") as archive:
            for name, content in members.items():
                archive.writestr(name, content)
            archive.writestr(
                f"{metadata}/METADATA", f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n"
            )
            archive.writestr(f"{metadata}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
            archive.writestr(f"{metadata}/RECORD", "")
        return path

    return make
