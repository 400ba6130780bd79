import os
import subprocess
import sys

from corecube.process import exclusive, open_lock, share, try_exclusive


def test_a_lock_has_one_holder_at_a_time(tmp_path):
    first, second = (open_lock(tmp_path / "lock") for _ in range(2))
    assert try_exclusive(first)
    assert not try_exclusive(second)
    os.close(first)
    assert try_exclusive(second)
    os.close(second)


def test_a_shared_lock_keeps_the_exclusive_one_away(tmp_path):
    first, second, third = (open_lock(tmp_path / "lock") for _ in range(3))
    share(first)
    share(second)
    assert not try_exclusive(third)
    for lock in (first, second, third):
        os.close(lock)


def test_a_killed_holder_leaves_no_lock(tmp_path):
    path = tmp_path / "lock"
    code = (
        "import sys, time; from pathlib import Path; from corecube.process import open_lock, try_exclusive;"
        "print(try_exclusive(open_lock(Path(sys.argv[1]))), flush=True); time.sleep(600)"
    )
    with subprocess.Popen([sys.executable, "-c", code, path], stdout=subprocess.PIPE) as holder:
        assert holder.stdout.readline() == b"True\n"
        lock = open_lock(path)
        assert not try_exclusive(lock)
        os.close(lock)
        holder.kill()
    with exclusive(path):
        pass
