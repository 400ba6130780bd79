"""The running process: CPU cores, garbage collection, memory for stack frames, and children that end with it."""

import gc
import os
import shutil
import signal
from collections.abc import Callable
from types import FunctionType
from typing import Final, ParamSpec, TypeVar

_P = ParamSpec("_P")
_T = TypeVar("_T")

#: New objects before a collection of the youngest generation; Python's default of 700 is reached often in one search.
_GC_THRESHOLD: Final = 20_000
#: Stack slots of eight bytes: slightly more than half of 1 MiB.
_STACK_SLOTS: Final = 66_000


def cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def end_with_parent(number: signal.Signals) -> tuple[str, ...]:
    """Return a command prefix that sends the child this signal when its parent dies; empty without `setpriv`."""
    setpriv = shutil.which("setpriv")
    return (setpriv, "--pdeathsig", number.name.removeprefix("SIG"), "--") if setpriv else ()


def tune_garbage_collection() -> None:
    """Exclude all current objects from garbage collection, and collect rarely.

    A full collection over all loaded code delays a request by 0.1 s. Reference counts free most objects anyway.
    """
    gc.collect()
    freeze_garbage()


def freeze_garbage() -> None:
    """Like `tune_garbage_collection`, but without a last collection, for a process that ends soon."""
    gc.freeze()
    gc.set_threshold(_GC_THRESHOLD)


def with_frame_memory(call: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
    """Return the result of `call`, with memory preallocated for its stack frames.

    CPython 3.11 to 3.14 stores a thread's frames in chunks of 16 KiB, maps a chunk when a call crosses into it and
    unmaps it when that call returns. A loop at such a boundary, as in nested templates, maps memory a thousand
    times per page: 10 of 100 ms. A frame that needs more than half of 1 MiB gets a chunk of 1 MiB, and the rest of
    the chunk holds all frames below. Untouched memory is not allocated.
    """
    result: _T = _call_with_memory(call, *args, **kwargs)
    return result


def _call(call: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
    return call(*args, **kwargs)


_call_with_memory: Final = FunctionType(_call.__code__.replace(co_stacksize=_STACK_SLOTS), {})
