"""The running process: cores, garbage collection, stack frames, children that end with it, locks, private files.

The kernel releases the lock of a file when its last holder ends, so no lock becomes stale.
"""

import fcntl
import gc
import os
import shutil
import signal
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FunctionType
from typing import Final, ParamSpec, TypeVar

_P = ParamSpec("_P")
_T = TypeVar("_T")

_STACK_SLOTS: Final = 66_000  #: Stack slots of eight bytes: slightly more than half of 1 MiB.
_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO


def cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def end_with_parent(number: signal.Signals) -> tuple[str, ...]:
    """Return a command prefix that sends the child this signal when its parent dies; empty without `setpriv`."""
    setpriv = shutil.which("setpriv")
    return (setpriv, "--pdeathsig", number.name.removeprefix("SIG"), "--") if setpriv else ()


def exclude_loaded_from_collection() -> None:
    """Exclude all current objects from garbage collection: looking at them all delays a request by 0.1 s."""
    gc.collect()
    gc.freeze()


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


def open_lock(path: Path) -> int:
    """Open a lock file without locking it, created if missing; return its file descriptor."""
    path.parent.mkdir(parents=True, exist_ok=True)
    return os.open(path, os.O_RDONLY | os.O_CREAT, 0o600)


def try_exclusive(lock: int) -> bool:
    """Try to lock an open file exclusively; return whether that succeeded."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def share(lock: int) -> None:
    """Lock an open file as shared, after waiting for an exclusive lock."""
    fcntl.flock(lock, fcntl.LOCK_SH)


@contextmanager
def exclusive(path: Path) -> Iterator[None]:
    """Hold an exclusive lock, after waiting for it."""
    lock = open_lock(path)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        # A process forked in the meantime also has the file open, so closing would not unlock it.
        fcntl.flock(lock, fcntl.LOCK_UN)
        os.close(lock)


def write_privately() -> None:
    """Make new files of this process and its children private."""
    os.umask(_OTHERS)


def make_private(path: Path) -> bool:
    """Remove the permissions of other accounts; return False if this account may not change them."""
    try:
        mode = stat.S_IMODE(path.stat().st_mode)
        if mode & _OTHERS:
            path.chmod(mode & ~_OTHERS)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


def make_all_private(folder: Path) -> Iterator[Path]:
    """Make the content of a folder private, except links; yield what could not be changed."""
    for place, folders, files in os.walk(folder):
        for name in (*folders, *files):
            path = Path(place, name)
            if not path.is_symlink() and not make_private(path):
                yield path
