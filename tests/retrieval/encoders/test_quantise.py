import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from retrieval.encoders.quantise import divide_fused_nodes, quantise_int8, widen_to_float32
from retrieval.encoders.session import open_session


@pytest.fixture
def weights():
    """Return channels of very different size: one scale for all of them would drown the small ones."""
    random = np.random.default_rng(7)
    return random.normal(size=(64, 32)) * np.geomspace(0.001, 1, 32)


@pytest.fixture
def half_model(tmp_path, weights):
    """Return a float16 network x -> x @ weights that takes and gives float32, as fused exports do."""
    nodes = [
        helper.make_node("Cast", ["x"], ["x16"], to=TensorProto.FLOAT16),
        helper.make_node("Constant", [], ["one"], value=numpy_helper.from_array(np.ones(1, np.float16))),
        helper.make_node("Mul", ["x16", "one"], ["same"]),
        helper.make_node("MatMul", ["same", "weights"], ["y16"], name="product"),
        helper.make_node("Cast", ["y16"], ["y"], to=TensorProto.FLOAT),
    ]
    graph = helper.make_graph(
        nodes,
        "half",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["texts", 64])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["texts", 32])],
        [numpy_helper.from_array(weights.astype(np.float16), "weights")],
        value_info=[helper.make_tensor_value_info("same", TensorProto.FLOAT16, ["texts", 64])],
    )
    path = tmp_path / "half.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


@pytest.fixture
def full_model(half_model, tmp_path):
    widen_to_float32(half_model, tmp_path / "full.onnx")
    return tmp_path / "full.onnx"


def run(path, x):
    return open_session(path).run(None, {"x": x.astype(np.float32)})[0]


def test_a_widened_model_holds_no_half_precision(full_model):
    graph = onnx.load(full_model).graph
    assert TensorProto.FLOAT16 not in {tensor.data_type for tensor in graph.initializer}
    assert TensorProto.FLOAT16 not in {value.type.tensor_type.elem_type for value in graph.value_info}
    assert "FLOAT16" not in onnx.printer.to_text(onnx.load(full_model)).upper()


def test_a_widened_model_computes_with_the_same_weights(full_model, weights):
    x = np.random.default_rng(1).normal(size=(5, 64)).astype(np.float32)
    np.testing.assert_allclose(
        run(full_model, x), x @ weights.astype(np.float16).astype(np.float32), rtol=1e-4, atol=1e-5
    )


def test_a_quantised_model_multiplies_in_int8_with_a_scale_a_channel(full_model, tmp_path):
    quantise_int8(full_model, tmp_path / "int8.onnx")
    graph = onnx.load(tmp_path / "int8.onnx").graph
    assert "MatMulInteger" in {node.op_type for node in graph.node}
    assert "MatMul" not in {node.op_type for node in graph.node}
    shapes = {tensor.name: (tensor.data_type, list(tensor.dims)) for tensor in graph.initializer}
    assert shapes["weights_quantized"] == (TensorProto.INT8, [64, 32])
    assert shapes["weights_scale"] == (TensorProto.FLOAT, [32])


def test_a_quantised_model_keeps_small_channels(full_model, tmp_path):
    quantise_int8(full_model, tmp_path / "int8.onnx")
    x = np.random.default_rng(2).normal(size=(100, 64))
    full, quantised = run(full_model, x), run(tmp_path / "int8.onnx", x)
    cosine = (full * quantised).sum(axis=0) / np.linalg.norm(full, axis=0) / np.linalg.norm(quantised, axis=0)
    assert cosine.min() > 0.999


def test_quantising_leaves_no_file_but_the_model(full_model, tmp_path):
    before = set(tmp_path.iterdir())
    quantise_int8(full_model, tmp_path / "int8.onnx")
    assert set(tmp_path.iterdir()) - before == {tmp_path / "int8.onnx"}


@pytest.fixture
def fused_model(tmp_path):
    """Return a network of one fused layer: an attention of four heads with a mask, and the sum that it is added to."""
    attention = helper.make_node(
        "Attention", ["x", "qkv", "qkv_bias", "tokens"], ["attended"], domain="com.microsoft", num_heads=4
    )
    skip = helper.make_node(
        "SkipLayerNormalization",
        ["attended", "x", "scale", "shift", "bias"],
        ["y"],
        domain="com.microsoft",
        epsilon=1e-12,
    )
    mask = [
        helper.make_node("Cast", ["attention_mask"], ["mask"], to=TensorProto.INT32),
        helper.make_node("ReduceSum", ["mask", "last"], ["tokens"], keepdims=0),
    ]
    random = np.random.default_rng(3)
    shapes = {"qkv": (32, 96), "qkv_bias": (96,), "scale": (32,), "shift": (32,), "bias": (32,)}
    constants = {name: random.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
    constants["last"] = np.array([1], np.int64)
    graph = helper.make_graph(
        [*mask, attention, skip],
        "fused",
        [
            helper.make_tensor_value_info("x", TensorProto.FLOAT, ["texts", "tokens_each", 32]),
            helper.make_tensor_value_info("attention_mask", TensorProto.INT64, ["texts", "tokens_each"]),
        ],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["texts", "tokens_each", 32])],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
        value_info=[helper.make_tensor_value_info("attended", TensorProto.FLOAT, ["texts", "tokens_each", 32])],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    path = tmp_path / "fused.onnx"
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), path)
    return path


def test_divided_nodes_compute_the_same_for_one_text_without_a_mask(fused_model, tmp_path):
    model = onnx.load(fused_model)
    divide_fused_nodes(model.graph)
    onnx.save(model, tmp_path / "divided.onnx")
    x = np.random.default_rng(4).normal(size=(1, 9, 32)).astype(np.float32)
    fused = open_session(fused_model).run(None, {"x": x, "attention_mask": np.ones((1, 9), np.int64)})[0]
    np.testing.assert_allclose(run(tmp_path / "divided.onnx", x), fused, rtol=1e-4, atol=1e-5)
    kinds = [node.op_type for node in model.graph.node]
    assert kinds == ["MatMul", "Add", "Split", "MultiHeadAttention", "Add", "Add", "LayerNormalization"]
    assert [value.name for value in model.graph.input] == ["x"]


def test_a_quantised_attention_has_one_product_for_all_heads(fused_model, tmp_path):
    quantise_int8(fused_model, tmp_path / "int8.onnx")
    kinds = [node.op_type for node in onnx.load(tmp_path / "int8.onnx").graph.node]
    assert (kinds.count("MatMulInteger"), kinds.count("MultiHeadAttention"), "QAttention" in kinds) == (1, 1, False)


@pytest.mark.parametrize(
    ("at", "change"),
    [
        (2, lambda node: node.attribute.append(helper.make_attribute("unidirectional", 1))),
        (3, lambda node: node.output.extend(["", "", "sum"])),
        (3, lambda node: node.input.pop()),
    ],
    ids=["attention to what is before", "a sum that is used", "no bias"],
)
def test_fused_nodes_of_other_forms_stay(fused_model, at, change):
    graph = onnx.load(fused_model).graph
    change(graph.node[at])
    node = graph.node[at].SerializeToString()
    divide_fused_nodes(graph)
    assert node in [it.SerializeToString() for it in graph.node]
