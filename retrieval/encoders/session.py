"""Sessions of onnxruntime: on the CPU one thread per run, and as many parallel runs as there are cores."""

from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any, Final, TypeAlias, TypeVar

import numpy as np

from retrieval.encoders.pooling import Floats, Ints, pad
from retrieval.errors import EncoderError

_GPU: Final = "CUDAExecutionProvider"
#: Padded tokens per run on a GPU: fewer leave it idle, more gain little (docs/benchmarks.md).
GPU_BATCH_TOKENS: Final = 8192
_CPUINFO: Final = Path("/proc/cpuinfo")
#: CPU flags of the instructions that add up int8 products without overflow.
_EXACT: Final = frozenset({"avx512_vnni", "avx_vnni"})
Session: TypeAlias = Any  #: onnxruntime.InferenceSession; onnxruntime has no types.
#: On the CPU, a sum joined with LayerNormalization takes eight times as long: it adds up each row number by number.
_SLOW_FUSIONS: Final = ("SkipLayerNormFusion",)
#: The inputs that a network for texts may have.
TEXT_INPUTS: Final = frozenset({"input_ids", "attention_mask", "token_type_ids"})

_In = TypeVar("_In")
_Out = TypeVar("_Out")


def open_session(path: Path, *, may_use_gpu: bool = False) -> Session:
    """Return the network of an ONNX file; raise EncoderError if it cannot be loaded.

    A GPU runs it if it may, and if onnxruntime-gpu is installed and finds one: it is faster only for float weights.
    """
    import onnxruntime  # noqa: PLC0415 -- only processes that run a model need it

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    if not sums_int8_exactly():
        # Sums of int8 products can overflow: trade speed for correct sums.
        options.add_session_config_entry("session.x64quantprecision", "1")
    devices: dict[str, Any] = {"providers": ["CPUExecutionProvider"], "disabled_optimizers": [*_SLOW_FUSIONS]}
    if may_use_gpu and _GPU in onnxruntime.get_available_providers():
        onnxruntime.preload_dlls()  # CUDA's libraries, where pip installed them
        devices = {"providers": [_GPU, "CPUExecutionProvider"]}
    try:
        return onnxruntime.InferenceSession(str(path), options, **devices)
    except Exception as error:  # onnxruntime's errors share no specific base class
        raise EncoderError(f"The model {path} cannot be loaded: {error}") from error


def is_on_gpu(session: Session) -> bool:
    """Return whether a GPU runs the network."""
    return _GPU in session.get_providers()


@cache
def sums_int8_exactly(cpuinfo: Path = _CPUINFO) -> bool:
    """Return whether every processor here adds up int8 products in 32 bits (VNNI); False if that is unknown.

    If so, the sums are correct without the slower products, and vectors are the same to the last bit.
    """
    try:
        lines = cpuinfo.read_text(encoding="utf-8").splitlines()
    except OSError:
        return False
    flags = [set(line.partition(":")[2].split()) for line in lines if line.startswith("flags")]
    return bool(flags) and all(it & _EXACT for it in flags)


def input_names(session: Session, *, model: str, known: frozenset[str] = TEXT_INPUTS) -> frozenset[str]:
    """Return the names of a network's inputs; raise EncoderError for an unknown one."""
    names = frozenset(node.name for node in session.get_inputs())
    if unknown := names - known:
        raise EncoderError(f"The model {model!r} has unknown inputs: {sorted(unknown)}.")
    return names


def run_texts(
    session: Session, token_ids: Sequence[Sequence[int]], *, inputs: frozenset[str], model: str
) -> tuple[Floats, Ints]:
    """Return the first output of a network for texts that share a run, and their mask; raise EncoderError."""
    ids, mask = pad(token_ids)
    feed = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
    try:
        return session.run(None, {name: feed[name] for name in inputs})[0], mask
    except Exception as error:  # onnxruntime's errors share no specific base class
        raise EncoderError(f"The model {model!r} failed: {error}") from error


def run_in_parallel(work: Callable[[_In], _Out], items: Sequence[_In], *, threads: int) -> Generator[_Out, None, None]:
    """Yield the results of the work on each item in order, with at most `threads` threads.

    After it is closed, or the work on an item raises, no other item is started.
    """
    workers = min(threads, len(items))
    if workers <= 1:
        yield from map(work, items)
        return
    # A pool for the call, not for the model: threads do not survive the fork of a worker process.
    with ThreadPoolExecutor(workers, thread_name_prefix="encode") as pool:
        yield from pool.map(work, items)
