"""Networks of downloaded models, rewritten once: half precision to full, full precision to int8 weights."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
import onnx
from onnx import GraphProto, NodeProto, TensorProto, helper, numpy_helper
from onnxruntime.quantization import QuantType, quantize_dynamic
from onnxruntime.quantization.shape_inference import quant_pre_process

_FUSED: Final = "com.microsoft"  #: The domain of onnxruntime's own nodes.
_MASK: Final = "attention_mask"
_ATTENTION_INPUTS: Final = 4  #: Input, weights, bias and mask; more are a past or a bias of positions.
_SKIP_INPUTS: Final = 5  #: Input, what is added to it, scale, shift and the bias of the product before.


def widen_to_float32(source: Path, target: Path) -> None:
    """Write the model with every float16 tensor, constant, cast and declared type as float32."""
    model = onnx.load(source)
    graph = model.graph
    for tensor in graph.initializer:
        _widen_tensor(tensor)
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.TENSOR:
                _widen_tensor(attribute.t)
            elif node.op_type == "Cast" and attribute.name == "to" and attribute.i == TensorProto.FLOAT16:
                attribute.i = TensorProto.FLOAT
    for value in (*graph.input, *graph.output, *graph.value_info):
        if value.type.tensor_type.elem_type == TensorProto.FLOAT16:
            value.type.tensor_type.elem_type = TensorProto.FLOAT
    onnx.save(model, target)


def _widen_tensor(tensor: TensorProto) -> None:
    if tensor.data_type == TensorProto.FLOAT16:
        tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor).astype(np.float32), tensor.name))


def quantise_int8(source: Path, target: Path) -> None:
    """Write the float32 model with int8 weights, one scale per channel; activations are scaled at run time.

    A scale per channel improves nDCG@10 on SciFact by 0.025 against one per tensor, at the same size and speed. A run
    has one text, so the network has no mask, and its fused nodes are those that are fast for one text.
    """
    model = onnx.load(source)
    divide_fused_nodes(model.graph)
    prepared = target.with_suffix(".prepared.onnx")
    quant_pre_process(model, str(prepared), skip_optimization=True, skip_symbolic_shape=True)
    quantize_dynamic(str(prepared), str(target), per_channel=True, weight_type=QuantType.QInt8)
    prepared.unlink()


def divide_fused_nodes(graph: GraphProto) -> None:
    """Replace the fused nodes of a float32 network that onnxruntime computes slowly for one text on a CPU.

    Attention would quantise a small product for each head; it becomes one product and an attention without mask.
    SkipLayerNormalization adds up each row number by number; it becomes sums and LayerNormalization. The results are
    the same but for rounding, in four fifths of the time (docs/benchmarks.md).
    """
    divided = [part for node in graph.node for part in _divided(node)]
    _replace(graph.node, _used(divided, {value.name for value in graph.output}))
    used = {name for node in graph.node for name in node.input}
    _replace(graph.initializer, [it for it in graph.initializer if it.name in used])
    _replace(graph.input, [it for it in graph.input if it.name in used or it.name != _MASK])


def _divided(node: NodeProto) -> Iterator[NodeProto]:
    settings = {attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute}
    out = node.output[0]
    if node.op_type == "Attention" and len(node.input) <= _ATTENTION_INPUTS and not settings.get("unidirectional"):
        product, every, *each = (f"{out}/{name}" for name in ("product", "qkv", "query", "key", "value"))
        rows, weights, bias = node.input[:3]
        heads = {name: settings[name] for name in ("num_heads", "scale") if name in settings}
        yield helper.make_node("MatMul", [rows, weights], [product], name=product)
        yield helper.make_node("Add", [product, bias], [every])
        yield helper.make_node("Split", [every], each, axis=2)
        yield helper.make_node("MultiHeadAttention", each, [out], domain=_FUSED, **heads)
    elif node.op_type == "SkipLayerNormalization" and len(node.input) == _SKIP_INPUTS and len(node.output) == 1:
        rows, skipped, scale, shift, bias = node.input
        biased, total = f"{out}/biased", f"{out}/total"
        yield helper.make_node("Add", [rows, bias], [biased])
        yield helper.make_node("Add", [biased, skipped], [total])
        yield helper.make_node("LayerNormalization", [total, scale, shift], [out], epsilon=settings["epsilon"])
    else:
        yield node


def _used(nodes: list[NodeProto], wanted: set[str]) -> list[NodeProto]:
    """Return the nodes whose results are used, in their order; `wanted` are the network's own results."""
    found = []
    for node in reversed(nodes):
        if not wanted.isdisjoint(node.output):
            found.append(node)
            wanted = wanted.union(node.input)
    return found[::-1]


def _replace(field: Any, values: Iterable[Any]) -> None:  # noqa: ANN401 -- protobuf's lists have no types here
    values = list(values)
    del field[:]
    field.extend(values)
