"""Models that look each token up in a table, small enough to work out by hand: sparse ones and late interaction."""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.normalizers import Lowercase
from tokenizers.pre_tokenizers import Whitespace
from tokenizers.processors import TemplateProcessing

from retrieval.encoders.manifest import LateInteractionManifest, SparseManifest, file_sha256, write_manifest

MARKS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "[Q]", "[D]")
_SHARED = {
    "max_tokens": 64,
    "batch_tokens": 0,
    "quantisation": "none",
    "source": "a test",
    "source_sha256": "0" * 64,
    "licence": "none",
}


def write_word_model(directory, words, table):
    """Write a tokenizer of these words and a network that gives a token its row of the table; return their files."""
    directory.mkdir(parents=True, exist_ok=True)
    vocabulary = {word: place for place, word in enumerate([*MARKS, *words])}
    tokenizer = Tokenizer(WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = Lowercase()
    tokenizer.pre_tokenizer = Whitespace()
    marks = [(mark, vocabulary[mark]) for mark in ("[CLS]", "[SEP]")]
    tokenizer.post_processor = TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=marks)
    tokenizer.save(str(directory / "tokenizer.json"))
    rows = np.array(table, np.float32)
    graph = helper.make_graph(
        [helper.make_node("Gather", ["table", "input_ids"], ["states"])],
        "words",
        [helper.make_tensor_value_info("input_ids", TensorProto.INT64, ["texts", "tokens"])],
        [helper.make_tensor_value_info("states", TensorProto.FLOAT, ["texts", "tokens", rows.shape[1]])],
        [numpy_helper.from_array(rows, "table")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, directory / "model.onnx")
    return {name: file_sha256(directory / name) for name in ("model.onnx", "tokenizer.json")}


def write_sparse_model(directory, words, *, also=None, **changes):
    """Write a model that gives each word of a text e - 1 at itself, and at another word where `also` says so.

    ln(1 + (e - 1)) = 1, so every word that stands there weighs 1.
    """
    size = len(MARKS) + len(words)
    table = np.zeros((size, size))
    places = {word: len(MARKS) + place for place, word in enumerate(words)}
    for word, place in places.items():
        table[place, place] = np.e - 1
        for other in (also or {}).get(word, ()):
            table[place, places[other]] = np.e - 1
    files = write_word_model(directory, words, table)
    write_manifest(
        SparseManifest(**{**_SHARED, "name": directory.name, "files": files, "vocabulary": size} | changes), directory
    )
    return places


def write_late_model(directory, vectors, **changes):
    """Write a model of late interaction that gives each word its vector, whatever stands around it."""
    dim = len(next(iter(vectors.values())))
    marks = np.zeros((len(MARKS), dim))
    marks[:, -1] = 1
    files = write_word_model(directory, tuple(vectors), [*marks, *vectors.values()])
    manifest = LateInteractionManifest(
        **{
            **_SHARED,
            "name": directory.name,
            "files": files,
            "dim": dim,
            "query_mark": MARKS.index("[Q]"),
            "document_mark": MARKS.index("[D]"),
            "query_tokens": 8,
            "mask_token": MARKS.index("[MASK]"),
        }
        | changes
    )
    write_manifest(manifest, directory)
    return directory
