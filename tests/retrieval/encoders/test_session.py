"""Running a network: its int8 products are right on whatever processor runs it."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from retrieval.encoders.session import is_on_gpu, open_session, sums_int8_exactly


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (["avx2 avx512f avx512_vnni"], True),
        (["avx2 avx_vnni"], True),
        (["avx2 avx512f"], False),
        (["avx2 avx512_vnni", "avx2"], False),
        ([], False),
    ],
)
def test_a_processor_sums_exactly_when_the_kernel_says_so_of_every_core(tmp_path, flags, expected):
    path = tmp_path / "cpuinfo"
    path.write_text("\n".join(f"processor : {number}\nflags\t\t: fpu {it}\n" for number, it in enumerate(flags)))
    assert sums_int8_exactly(path) is expected


def test_where_nothing_tells_it_is_not_taken_for_exact(tmp_path):
    assert not sums_int8_exactly(tmp_path / "none")


def product_of(weights, path, *, operator, kinds):
    """Write a network that multiplies its input by weights."""
    rows, columns = weights.shape
    graph = helper.make_graph(
        [helper.make_node(operator, ["x", "w"], ["y"])],
        "products",
        [helper.make_tensor_value_info("x", kinds[0], ["n", rows])],
        [helper.make_tensor_value_info("y", kinds[1], ["n", columns])],
        [numpy_helper.from_array(weights, "w")],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


@pytest.mark.parametrize("may_use_gpu", [False, True])
def test_a_network_runs_with_and_without_a_gpu(tmp_path, may_use_gpu):
    weights = np.arange(6, dtype=np.float32).reshape(2, 3)
    product_of(weights, tmp_path / "model.onnx", operator="MatMul", kinds=[TensorProto.FLOAT, TensorProto.FLOAT])
    session = open_session(tmp_path / "model.onnx", may_use_gpu=may_use_gpu)
    (found,) = session.run(None, {"x": np.ones((1, 2), np.float32)})
    np.testing.assert_array_equal(found, [[3, 5, 7]])
    if not may_use_gpu:
        assert not is_on_gpu(session)


def test_the_greatest_products_are_summed_without_overflow(tmp_path):
    weights = np.full((1024, 48), 127, np.int8)
    weights[:, ::2] = -127
    kinds = [TensorProto.UINT8, TensorProto.INT32]
    product_of(weights, tmp_path / "model.onnx", operator="MatMulInteger", kinds=kinds)
    session = open_session(tmp_path / "model.onnx")
    for rows in (1, 7):
        (found,) = session.run(None, {"x": np.full((rows, 1024), 255, np.uint8)})
        np.testing.assert_array_equal(found, np.tile(255 * 1024 * weights[0].astype(np.int32), (rows, 1)))
