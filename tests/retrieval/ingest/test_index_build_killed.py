"""Building an embedding index in a process that is killed, in an installation of its own with real models."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from django.conf import settings

_MODELS = (settings.CORECUBE_MODEL, f"{settings.CORECUBE_MODEL}-fp32")
_PAGES = 150
_WAIT_SECONDS = 60


@pytest.fixture
def environment():
    """Return the environment of an installation with many short documents in the first index."""
    if any(not (settings.CORECUBE_MODELS_DIR / name / "manifest.json").is_file() for name in _MODELS):
        pytest.skip("two models are needed: run manage.py models fetch, and again with --precision fp32")
    with tempfile.TemporaryDirectory(prefix="corecube-test-") as name:
        folder = Path(name) / "pages"
        folder.mkdir()
        for number in range(_PAGES):
            (folder / f"page-{number}.txt").write_text(f"Pump {number} stands in hall {number % 7}.")
        (Path(name) / "models").symlink_to(settings.CORECUBE_MODELS_DIR)
        inherited = {key: value for key, value in os.environ.items() if key not in {"DATABASE_URL", "REDIS_URL"}}
        found = {**inherited, "CORECUBE_VAR_DIR": name, "CORECUBE_LOG_LEVEL": "WARNING"}
        manage(found, "migrate", "--verbosity", "0")
        manage(found, "ingest", str(folder))
        yield found


def manage(environment, *arguments, allowed=(0,)):
    command = [sys.executable, "manage.py", *arguments]
    done = subprocess.run(
        command, cwd=settings.BASE_DIR, env=environment, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode in allowed, done.stderr
    return done.stdout


def test_a_build_that_is_killed_goes_on(environment):
    manage(environment, "indexes", "start", "--model", _MODELS[1])
    build = subprocess.Popen(
        [sys.executable, "manage.py", "indexes", "build"],
        cwd=settings.BASE_DIR,
        env=environment,
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
    )
    first = build.stderr.readline()
    build.send_signal(signal.SIGKILL)
    build.wait()
    build.stderr.close()
    assert "building" in first
    whole, partly = vectors(environment)
    assert 0 < partly < whole == _PAGES
    # The server gives up the dead process's lock once it notices, which takes a moment.
    deadline = time.monotonic() + _WAIT_SECONDS
    while "is complete" not in manage(environment, "indexes", "build", allowed=(0, 1)):
        assert time.monotonic() < deadline
    assert vectors(environment) == [_PAGES, _PAGES]
    assert _MODELS[1] in manage(environment, "indexes", "switch")


def vectors(environment):
    """Return how many vectors each index has, the active one first."""
    lines = manage(environment, "indexes", "status").splitlines()[1:]
    counts = [next(word for word in line.split() if "/" in word) for line in lines]
    return [int(count.partition("/")[0]) for count in counts]
