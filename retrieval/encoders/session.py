"""Running a network on onnxruntime: one thread a run, so that as many runs go at once as there are cores."""

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final, TypeAlias, TypeVar

import onnxruntime

from retrieval.errors import EncoderError

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
    # Where the processor's int8 products can overflow (AVX2, AVX-512 without VNNI), trade speed for right sums.
    options.add_session_config_entry("session.x64quantprecision", "1")
    try:
        return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime's errors share no base class of their own
        raise EncoderError(f"The model {path} cannot be loaded: {error}") from error


def input_names(session: Session, *, model: str) -> frozenset[str]:
    """Return the names of the inputs that a network asks for; raise EncoderError for one that no text can give."""
    names = frozenset(node.name for node in session.get_inputs())
    if unknown := names - TEXT_INPUTS:
        raise EncoderError(f"The model {model!r} asks for inputs that CoreCube lacks: {sorted(unknown)}.")
    return names


def side_by_side(work: Callable[[_In], _Out], items: Sequence[_In], *, threads: int) -> Iterator[_Out]:
    """Yield the work on each item in order, on at most `threads` threads at once."""
    workers = min(threads, len(items))
    if workers <= 1:
        yield from map(work, items)
        return
    # A pool for the call, not for the model: threads do not survive the fork of a worker process.
    with ThreadPoolExecutor(workers, thread_name_prefix="encode") as pool:
        yield from pool.map(work, items)


def cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
