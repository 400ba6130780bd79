"""A model that writes, small enough to work out by hand.

It writes "what", then one word of its text, the likelier the oftener the word stands there, and ends.
"""

from dataclasses import replace

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from tokenizers.processors import TemplateProcessing

from retrieval.encoders.manifest import Seq2SeqManifest, file_sha256, write_manifest

#: The first two are special; `what` is 3, words that may follow it are 4 and more.
WORDS = ("<pad>", "</s>", "<unk>", "what", "pump", "valve", "lamp")
FILES = ("encoder_model.onnx", "decoder_model.onnx", "tokenizer.json")
_FAR = 50.0

TINY = Seq2SeqManifest(
    name="tiny-writer",
    max_tokens=8,
    batch_tokens=0,
    quantisation="none",
    source="a test",
    source_sha256="0" * 64,
    licence="none",
    files=dict.fromkeys(FILES, ""),
    prefix="",
    start_token=0,
    end_token=1,
)


def write_model(directory, *, ends=True, more_inputs=(), **changes):
    """Write the model's directory, with manifest fields changed as asked; one that does not end repeats its word."""
    directory.mkdir(parents=True, exist_ok=True)
    _write_tokenizer(directory / "tokenizer.json")
    _write_encoder(directory / "encoder_model.onnx")
    _write_decoder(directory / "decoder_model.onnx", ends=ends, more_inputs=more_inputs)
    files = {name: file_sha256(directory / name) for name in FILES}
    write_manifest(replace(TINY, **({"files": files} | changes)), directory)
    return directory


def _write_tokenizer(path):
    tokenizer = Tokenizer(WordLevel({word: row for row, word in enumerate(WORDS)}, unk_token="<unk>"))
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.add_special_tokens(["<pad>", "</s>", "<unk>"])
    tokenizer.post_processor = TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    tokenizer.save(str(path))


def _write_encoder(path):
    """A token's state is 1 at its own number, but for the special ones."""
    table = np.diag([0, 0, 0, 0, 1, 1, 1]).astype(np.float32)
    nodes = [helper.make_node("Gather", ["table", "input_ids"], ["last_hidden_state"])]
    _save(path, nodes, {"table": table}, ints=("input_ids", "attention_mask"), output="last_hidden_state")


def _write_decoder(path, *, ends, more_inputs):
    """A token's logits are the row of the one before it, and once more for each time that it stands in the text."""
    rows = np.full((len(WORDS), len(WORDS)), -_FAR, np.float32)
    rows[0, 3] = _FAR
    rows[3, 4:] = 0
    rows[4:, 1 if ends else 4] = _FAR
    nodes = [
        helper.make_node("Gather", ["rows", "input_ids"], ["next"]),
        helper.make_node("Cast", ["encoder_attention_mask"], ["weights"], to=TensorProto.FLOAT),
        helper.make_node("Unsqueeze", ["weights", "last"], ["column"]),
        helper.make_node("Mul", ["encoder_hidden_states", "column"], ["kept"]),
        helper.make_node("ReduceSum", ["kept", "tokens"], ["counts"], keepdims=1),
        helper.make_node("Add", ["next", "counts"], ["logits"]),
    ]
    constants = {"rows": rows, "last": np.array([2], np.int64), "tokens": np.array([1], np.int64)}
    ints = ("input_ids", "encoder_attention_mask", *more_inputs)
    _save(path, nodes, constants, ints=ints, states="encoder_hidden_states", output="logits")


def _save(path, nodes, constants, *, ints, output, states=""):
    inputs = [helper.make_tensor_value_info(name, TensorProto.INT64, ["texts", f"of_{name}"]) for name in ints]
    if states:
        inputs.append(helper.make_tensor_value_info(states, TensorProto.FLOAT, ["texts", "read", len(WORDS)]))
    graph = helper.make_graph(
        nodes,
        "tiny-writer",
        inputs,
        [helper.make_tensor_value_info(output, TensorProto.FLOAT, ["texts", "tokens_each", len(WORDS)])],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
