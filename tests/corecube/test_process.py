"""Memory for stack frames, garbage collection of a process that has loaded its code, and threads of NumPy."""

import resource
import subprocess
import sys

import pytest

from corecube.process import with_frame_memory

#: Calls around whose depth a border between two chunks of frames must lie.
_DEPTHS = range(1, 120)
_CALLS = 50


def _leaf(value):
    return value


def _deep(depth, value):
    """Call a function many times from `depth` frames down."""
    if depth:
        return _deep(depth - 1, value)
    for _ in range(_CALLS):
        _leaf(value)
    return value


def _faults():
    """Return the pages that calls at every depth had mapped anew."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for depth in _DEPTHS:
        _deep(depth, 1)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


def test_a_call_comes_back_with_its_result_or_its_error():
    assert with_frame_memory(divmod, 7, 2) == (3, 1)
    assert with_frame_memory(sorted, [2, 1], reverse=True) == [2, 1]
    with pytest.raises(ZeroDivisionError):
        with_frame_memory(divmod, 1, 0)


def test_frames_below_it_map_no_memory():
    _faults()
    assert with_frame_memory(_faults) < _CALLS


LOADED = """
import gc
from corecube import process

class Ring:
    def __init__(self):
        self.ring = self

process.exclude_loaded_from_collection()
assert gc.get_freeze_count() > 1000, "what is loaded is looked through again"
before = gc.get_stats()[0]["collections"]
kept = [[] for _ in range(10_000)]
assert gc.get_stats()[0]["collections"] == before, "so many objects of one search set it off"
Ring()
assert gc.collect() >= 1, "what comes later is not collected at all"
"""


def test_what_is_loaded_is_never_looked_through_again_and_the_rest_seldom():
    done = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


MULTIPLIED = """
import os
import corecube
import numpy as np

matrix = np.ones((512, 512), dtype=np.float32)
matrix @ matrix
print(len(os.listdir("/proc/self/task")))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="counts the threads that Linux lists")
def test_a_product_of_matrices_runs_in_its_own_thread():
    done = subprocess.run([sys.executable, "-c", MULTIPLIED], capture_output=True, text=True, check=True)
    assert int(done.stdout) == 1, "another thread waits for products, and spins"
