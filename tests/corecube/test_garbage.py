"""What a process that has loaded its code still collects; in a process of its own, as it cannot be taken back."""

import subprocess
import sys

import pytest

LOADED = """
import gc
from corecube import garbage

class Ring:
    def __init__(self):
        self.ring = self

garbage.{how}()
assert gc.get_freeze_count() > 1000, "what is loaded is looked through again"
before = gc.get_stats()[0]["collections"]
kept = [[] for _ in range(10_000)]
assert gc.get_stats()[0]["collections"] == before, "so many objects of one search set it off"
Ring()
assert gc.collect() >= 1, "what comes later is not collected at all"
"""


@pytest.mark.parametrize("how", ["settle", "spare"])
def test_what_is_loaded_is_never_looked_through_again_and_the_rest_seldom(how):
    done = subprocess.run([sys.executable, "-c", LOADED.format(how=how)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
