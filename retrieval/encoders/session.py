"""Running a network on onnxruntime: one thread a run, so that as many runs go at once as there are cores."""

from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any, Final, TypeAlias, TypeVar

import onnxruntime

from retrieval.errors import EncoderError

_CPUINFO: Final = Path("/proc/cpuinfo")
#: What the kernel calls the instructions that add int8 products up without overflow.
_EXACT: Final = frozenset({"avx512_vnni", "avx_vnni"})
#: onnxruntime.InferenceSession; onnxruntime has no types.
Session: TypeAlias = Any
#: What a network that reads text may ask for.
TEXT_INPUTS: Final = frozenset({"input_ids", "attention_mask", "token_type_ids"})

_In = TypeVar("_In")
_Out = TypeVar("_Out")


def open_session(path: Path) -> Session:
    """Return the network of an ONNX file; raise EncoderError if it cannot be loaded."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    if not sums_int8_exactly():
        # Its int8 products can overflow: trade speed for right sums.
        options.add_session_config_entry("session.x64quantprecision", "1")
    try:
        return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime's errors share no base class of their own
        raise EncoderError(f"The model {path} cannot be loaded: {error}") from error


@cache
def sums_int8_exactly(cpuinfo: Path = _CPUINFO) -> bool:
    """Return whether every processor here adds int8 products up in 32 bits (VNNI); False where nothing tells.

    Then the sums are right without the slower products, and vectors are the same to the last bit.
    """
    try:
        lines = cpuinfo.read_text(encoding="utf-8").splitlines()
    except OSError:
        return False
    flags = [set(line.partition(":")[2].split()) for line in lines if line.startswith("flags")]
    return bool(flags) and all(it & _EXACT for it in flags)


def input_names(session: Session, *, model: str) -> frozenset[str]:
    """Return the names of the inputs that a network asks for; raise EncoderError for one that no text can give."""
    names = frozenset(node.name for node in session.get_inputs())
    if unknown := names - TEXT_INPUTS:
        raise EncoderError(f"The model {model!r} asks for inputs that CoreCube lacks: {sorted(unknown)}.")
    return names


def side_by_side(work: Callable[[_In], _Out], items: Sequence[_In], *, threads: int) -> Generator[_Out, None, None]:
    """Yield the work on each item in order, on at most `threads` threads at once.

    Once it is closed, or the work on an item raises, no other item is begun.
    """
    workers = min(threads, len(items))
    if workers <= 1:
        yield from map(work, items)
        return
    # A pool for the call, not for the model: threads do not survive the fork of a worker process.
    with ThreadPoolExecutor(workers, thread_name_prefix="encode") as pool:
        yield from pool.map(work, items)
