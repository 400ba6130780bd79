"""Syncs by a real Celery worker, over both brokers, in an installation of its own."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from django.conf import settings

_MODEL = settings.CORECUBE_MODELS_DIR / settings.CORECUBE_MODEL
_WAIT_SECONDS = 90


@pytest.fixture(scope="module")
def installation():
    """Return the environment of an installation whose database is migrated."""
    if not (_MODEL / "manifest.json").is_file():
        pytest.skip(f"the model {_MODEL.name} is not here: run manage.py models fetch")
    with tempfile.TemporaryDirectory(prefix="corecube-test-") as name:
        (Path(name) / "models").symlink_to(settings.CORECUBE_MODELS_DIR)
        inherited = {key: value for key, value in os.environ.items() if key not in {"DATABASE_URL", "REDIS_URL"}}
        environment = {**inherited, "CORECUBE_VAR_DIR": name}
        manage(environment, "migrate", "--verbosity", "0")
        yield environment


@pytest.fixture
def redis_url():
    """Start a Redis server of the test's own and return its address."""
    if not shutil.which("redis-server"):
        pytest.skip("redis-server is not installed")
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    server = subprocess.Popen(
        ["redis-server", "--port", str(port), "--save", "", "--appendonly", "no"], stdout=subprocess.DEVNULL
    )
    yield f"redis://127.0.0.1:{port}/0"
    server.terminate()
    server.wait()


def manage(environment, *arguments):
    """Run a command of the installation and return what it printed."""
    finished = subprocess.run(
        [sys.executable, "manage.py", *arguments],
        cwd=settings.BASE_DIR,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert finished.returncode == 0, finished.stderr
    return finished.stdout


def worker(environment):
    return subprocess.Popen(
        [sys.executable, "-m", "celery", "-A", "corecube", "worker", "--pool", "threads", "--concurrency", "2"],
        cwd=settings.BASE_DIR,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def wait_until_searchable(environment, word):
    """Ask until the newest sync is done, and return what it took in."""
    until = time.monotonic() + _WAIT_SECONDS
    script = (
        "from retrieval.models import Chunk, Sync; s = Sync.objects.first();"
        f"print(s.status, s.added, Chunk.objects.filter(text__contains={word!r}).count())"
    )
    while time.monotonic() < until:
        state = manage(environment, "shell", "--verbosity", "0", "-c", script).split()
        if state[0] not in {"queued", "running"}:
            return state
        time.sleep(1)
    pytest.fail(f"the sync did not finish: {state}")


def ingest_by_worker(environment, folder, word):
    folder.mkdir()
    (folder / "page.md").write_text(f"# Page\n\nThe word is {word}.\n")
    manage(environment, "ingest", str(folder), "--connection", word, "--queue")
    process = worker(environment)
    try:
        assert wait_until_searchable(environment, word) == ["done", "1", "1"]
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=30)


def test_a_queued_sync_is_run_by_a_worker_over_files(installation, tmp_path):
    ingest_by_worker(installation, tmp_path / "files", "quetzal")


@pytest.mark.redis
def test_a_queued_sync_is_run_by_a_worker_over_redis(installation, redis_url, tmp_path):
    ingest_by_worker({**installation, "REDIS_URL": redis_url}, tmp_path / "redis", "ocelot")
