"""Building an embedding index in a process that is killed, in an installation of its own with real models."""

import signal
import subprocess
import sys

import pytest
from django.conf import settings

from tests.installation import Observer, new_installation
from tests.race import until

_MODELS = (settings.CORECUBE_MODEL, f"{settings.CORECUBE_MODEL}-fp32")
_PAGES = 150
_WAIT_SECONDS = 60
#: Builds, unless somebody else does.
_BUILD = """
from django.core.management import CommandError, call_command
try:
    call_command("indexes", "build")
except CommandError as error:
    print(error)
"""


@pytest.fixture
def environment():
    """Return the environment of an installation."""
    if any(not (settings.CORECUBE_MODELS_DIR / name / "manifest.json").is_file() for name in _MODELS):
        pytest.skip("two models are needed: run manage.py models fetch, and again with --precision fp32")
    with new_installation(CORECUBE_LOG_LEVEL="WARNING") as environment:
        yield environment


@pytest.fixture
def observe(environment, tmp_path):
    """Return what runs commands in the installation, with many short documents in the first index."""
    for number in range(_PAGES):
        (tmp_path / f"page-{number}.txt").write_text(f"Pump {number} stands in hall {number % 7}.")
    observer = Observer(environment)
    observer.manage("ingest", str(tmp_path))
    yield observer
    observer.end()


def test_a_build_that_is_killed_goes_on(environment, observe):
    observe.manage("indexes", "start", "--model", _MODELS[1])
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
    whole, partly = vectors(observe)
    assert 0 < partly < whole == _PAGES
    # The server gives up the dead process's lock once it notices, which takes a moment.
    until(lambda: "is complete" in observe(_BUILD), _WAIT_SECONDS)
    assert vectors(observe) == [_PAGES, _PAGES]
    assert _MODELS[1] in observe.manage("indexes", "switch")


def vectors(observe):
    """Return how many vectors each index has, the active one first."""
    lines = [line for line in observe.manage("indexes", "status").splitlines() if line[0].isdigit()]
    counts = [next(word for word in line.split() if "/" in word) for line in lines]
    return [int(count.partition("/")[0]) for count in counts]
