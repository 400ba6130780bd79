import subprocess
import sys

import pytest

from retrieval.evaluation.bench.against import ratio_of
from retrieval.evaluation.bench.processes import cpu_seconds

BUSY = "import time\nwhile time.process_time() < 0.3: pass\nprint('done', flush=True)\ninput()"


def test_the_ratio_is_the_geometric_mean_of_the_rounds():
    # Ratios of 1/2 and 2: their product is 1, and a resample has both of one kind, or one of each.
    assert ratio_of([10, 10], [5, 20]) == pytest.approx((1, 0.5, 2))
    # A machine twice as slow in one round does not change the ratio.
    assert ratio_of([10, 20, 10], [4, 8, 4]) == pytest.approx((0.4, 0.4, 0.4))


def test_cpu_time_counts_children_that_run_and_that_ended():
    parent = f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {BUSY!r}], input=b'\\n')\n{BUSY}"
    with subprocess.Popen([sys.executable, "-c", parent], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"done\n"
        assert process.stdout.readline() == b"done\n"
        assert 0.5 <= cpu_seconds(process.pid) < 5
        process.stdin.write(b"\n")
        process.stdin.close()


def test_an_unknown_commit_is_refused():
    command = [sys.executable, "manage.py", "bench", "--against=no-such-commit"]
    done = subprocess.run(command, capture_output=True, check=False, text=True)
    assert "git rev-parse failed" in done.stderr
    assert done.returncode == 1
