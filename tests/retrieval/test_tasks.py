"""Syncs by a real Celery worker, over both brokers, in an installation of its own."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

import pytest
from django.conf import settings

_MODEL = settings.CORECUBE_MODELS_DIR / settings.CORECUBE_MODEL
#: A busy machine is slow, and that is no failure.
_WAIT_SECONDS = 240
_PAGES = 500


@pytest.fixture(scope="module")
def installation():
    """Return the environment of an installation whose database is migrated."""
    if not (_MODEL / "manifest.json").is_file():
        pytest.skip(f"the model {_MODEL.name} is not here: run manage.py models fetch")
    with tempfile.TemporaryDirectory(prefix="corecube-test-") as name:
        (Path(name) / "models").symlink_to(settings.CORECUBE_MODELS_DIR)
        inherited = {key: value for key, value in os.environ.items() if key not in {"DATABASE_URL", "REDIS_URL"}}
        environment = {**inherited, "CORECUBE_VAR_DIR": name, "CORECUBE_LOST_SECONDS": "4"}
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


def redis_pid(url):
    """Return the process id of a Redis server."""
    with socket.create_connection(("127.0.0.1", int(url.split(":")[2].split("/")[0]))) as server:
        server.sendall(b"INFO server\r\n")
        answer = server.recv(8192).decode()
    return next(line.split(":")[1] for line in answer.splitlines() if line.startswith("process_id"))


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


def end(process, stop):
    """Send the signal; a worker that is still there after its grace is killed, as `manage.py start` does it."""
    process.send_signal(stop)
    try:
        process.wait(timeout=30 if stop == signal.SIGTERM else 1)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


@contextmanager
def worker(environment, *, stop=signal.SIGTERM):
    """Run a worker for the block; it is ended by this signal."""
    process = subprocess.Popen(
        [sys.executable, "-m", "celery", "-A", "corecube", "worker", "--pool", "threads", "--concurrency", "2"],
        cwd=settings.BASE_DIR,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield process
    finally:
        end(process, stop)


def wait_until_searchable(environment, word):
    """Wait until the newest sync has ended, and return what it took in."""
    script = (
        "import time\nfrom retrieval.models import Chunk, Sync\ns = Sync.objects.first()\n"
        f"until = time.monotonic() + {_WAIT_SECONDS}\n"
        "while s.status in ('queued', 'running') and time.monotonic() < until:"
        " time.sleep(0.2); s.refresh_from_db()\n"
        f"print(s.status, s.added, Chunk.objects.filter(text__contains={word!r}).count())"
    )
    return manage(environment, "shell", "--verbosity", "0", "-c", script).split()


def ingest_by_worker(environment, folder, word):
    folder.mkdir()
    (folder / "page.md").write_text(f"# Page\n\nThe word is {word}.\n")
    manage(environment, "ingest", str(folder), "--connection", word, "--queue")
    with worker(environment):
        assert wait_until_searchable(environment, word) == ["done", "1", "1"]


def test_a_queued_sync_is_run_by_a_worker_over_files(installation, tmp_path):
    ingest_by_worker(installation, tmp_path / "files", "quetzal")


@pytest.mark.redis
def test_a_queued_sync_is_run_by_a_worker_over_redis(installation, redis_url, tmp_path):
    ingest_by_worker({**installation, "REDIS_URL": redis_url}, tmp_path / "redis", "ocelot")


def many_pages(folder, word):
    """Fill a folder with enough small files for a sync of many seconds and several batches."""
    folder.mkdir()
    for number in range(_PAGES):
        (folder / f"{number}.md").write_text(f"# Page {number}\n\n{f'The {word} number {number} waits. ' * 3}\n")


def wait_until_half_way(environment):
    """Wait until the newest sync has stored its first batch."""
    script = (
        "import time\nfrom retrieval.models import Document, Sync\ns = Sync.objects.first()\n"
        f"until = time.monotonic() + {_WAIT_SECONDS}\n"
        "while not Document.objects.filter(connection=s.connection).exists() and time.monotonic() < until:"
        " time.sleep(0.05)\n"
        "s.refresh_from_db(); print(s.status)"
    )
    assert manage(environment, "shell", "--verbosity", "0", "-c", script).split() == ["running"]


def wait_for_more(environment):
    """Wait until documents of the newest sync are stored beyond those that are there now."""
    script = (
        "import time\nfrom retrieval.models import Document, Sync\ns = Sync.objects.first()\n"
        "stored = Document.objects.filter(connection=s.connection)\nbefore = stored.count()\n"
        f"until = time.monotonic() + {_WAIT_SECONDS}\n"
        "while stored.count() == before and time.monotonic() < until: time.sleep(0.05)\n"
        f"print(before < stored.count() < {_PAGES})"
    )
    assert manage(environment, "shell", "--verbosity", "0", "-c", script).split() == ["True"]


@pytest.mark.timeout(900)
@pytest.mark.parametrize("stop", [signal.SIGQUIT, signal.SIGKILL])
def test_a_sync_whose_worker_ends_is_finished_by_the_next_worker(installation, tmp_path, stop):
    word = f"ibis{stop}"
    many_pages(tmp_path / word, word)
    manage(installation, "ingest", str(tmp_path / word), "--connection", word, "--queue")
    with worker(installation, stop=stop):
        wait_until_half_way(installation)
    script = "from retrieval.models import Sync; s = Sync.objects.first(); print(s.status)"
    assert manage(installation, "shell", "--verbosity", "0", "-c", script).split()[0] in {"queued", "running"}
    with worker(installation):
        status, added, chunks = wait_until_searchable(installation, word)
    # Not one is lost, and none is there or counted twice.
    assert (status, int(added), int(chunks)) == ("done", _PAGES, _PAGES)


def rows(environment, word):
    """Return everything that is stored of a connection, and its term counts, without what depends on the hour."""
    script = (
        "import json\nfrom retrieval.models import *\n"
        "from django.db.models import Sum\n"
        f"c = Connection.objects.get(slug={word!r})\n"
        "docs = list(Document.objects.filter(connection=c).order_by('external_id')"
        ".values_list('external_id', 'title', 'byte_size', 'metadata'))\n"
        "names = dict(Document.objects.filter(connection=c).values_list('pk', 'external_id'))\n"
        "chunks = sorted((names[d], o, t, h, str(s), *map(str, facts)) for d, o, t, h, s, *facts"
        " in Chunk.objects.filter(connection_id=c.pk)"
        ".values_list('document_id', 'ordinal', 'text', 'content_hash', 'search', 'quality', 'salience', 'hints'))\n"
        "vectors = sorted((names[e.document_id], e.ordinal, e.index_id, e.vector.to_text())"
        " for e in Embedding.objects.filter(connection_id=c.pk))\n"
        "terms = sorted(TermFrequency.objects.filter(connection_id=c.pk).order_by().values_list('lexeme')"
        ".annotate(Sum('chunks')))\n"
        "print(json.dumps([docs, chunks, vectors, terms]))"
    ).replace(
        "from retrieval.models import *", "from retrieval.models import *; from corecube.models import Connection"
    )
    return json.loads(manage(environment, "shell", "--verbosity", "0", "-c", script))


def kill_postgres(environment):
    """Kill every process of the embedded server, as a crash of the machine would."""
    pid = int((Path(environment["CORECUBE_VAR_DIR"]) / "postgres" / "postmaster.pid").read_text().split()[0])
    os.kill(pid, signal.SIGKILL)


@pytest.mark.redis
@pytest.mark.timeout(900)
def test_after_kills_of_worker_database_and_queue_the_store_is_what_it_would_have_been(
    installation, redis_url, tmp_path
):
    many_pages(tmp_path / "heron", "heron")
    manage(installation, "ingest", str(tmp_path / "heron"), "--connection", "undisturbed")
    environment = {**installation, "REDIS_URL": redis_url}
    manage(environment, "ingest", str(tmp_path / "heron"), "--connection", "disturbed", "--queue")
    with worker(environment, stop=signal.SIGKILL):
        wait_until_half_way(environment)
    with worker(environment):
        wait_for_more(environment)
        kill_postgres(environment)
        os.kill(int(redis_pid(redis_url)), signal.SIGKILL)
        # The queue is gone with all that was in it; files take its place.
    with worker(installation):
        status, added, _ = wait_until_searchable(installation, "heron")
    assert (status, int(added)) == ("done", _PAGES)
    disturbed, undisturbed = rows(installation, "disturbed"), rows(installation, "undisturbed")
    # Every number of every vector too, bit by bit.
    assert disturbed == undisturbed
    assert len(undisturbed[2]) == _PAGES
