"""Syncs by a real Celery worker, over both brokers, in an installation of its own."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest
from django.conf import settings

from tests.installation import STORE_SLOWLY, Observer, new_installation
from tests.profiles import nightly

_MODEL = settings.CORECUBE_MODELS_DIR / settings.CORECUBE_MODEL
#: A busy machine is slow, and that is no failure.
_WAIT_SECONDS = 240
#: Feeds have a chunk for each entry. Together these are more than one batch, which is of 256 chunks.
_FEEDS, _ENTRIES = 70, 4
_CHUNKS = _FEEDS * _ENTRIES


@pytest.fixture(scope="module")
def installation():
    """Return the environment of an installation."""
    if not (_MODEL / "manifest.json").is_file():
        pytest.skip(f"the model {_MODEL.name} is not here: run manage.py models fetch")
    with new_installation(CORECUBE_LOST_SECONDS="4", CORECUBE_WARM_UP="no") as environment:
        yield environment


@pytest.fixture(scope="module")
def observe(installation):
    """Return what runs scripts and commands in the installation."""
    observer = Observer(installation)
    yield observer
    observer.end()


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
        process.wait(timeout=10 if stop == signal.SIGTERM else 1)
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


def wait_until_searchable(observe, word):
    """Wait until the newest sync has ended, and return what it took in."""
    script = (
        "import time\nfrom retrieval.models import Chunk, Sync\ns = Sync.objects.first()\n"
        f"until = time.monotonic() + {_WAIT_SECONDS}\n"
        "while s.status in ('queued', 'running') and time.monotonic() < until:"
        " time.sleep(0.2); s.refresh_from_db()\n"
        f"print(s.status, s.added, Chunk.objects.filter(text__contains={word!r}).count())"
    )
    return observe(script).split()


def one_page(folder, word):
    folder.mkdir()
    (folder / "page.md").write_text(f"# Page\n\nThe word is {word}.\n")
    return "ingest", str(folder), "--connection", word, "--queue"


# By default, tests/deploy/test_two_machines.py has a worker run a sync that came over Redis.
@nightly
def test_a_queued_sync_is_run_by_a_worker_over_redis(installation, observe, redis_url, tmp_path):
    environment = {**installation, "REDIS_URL": redis_url}
    manage(environment, *one_page(tmp_path / "redis", "ocelot"))
    with worker(environment):
        assert wait_until_searchable(observe, "ocelot") == ["done", "1", "1"]


def many_feeds(folder, word):
    """Fill a folder with enough small files for a sync of some seconds and several batches."""
    folder.mkdir()
    for number in range(_FEEDS):
        entries = "".join(
            f"<item><title>Entry {entry}</title><description>The {word} number {number} waits.</description></item>"
            for entry in range(_ENTRIES)
        )
        feed = f"<rss version='2.0'><channel><title>Feed {number}</title>{entries}</channel></rss>"
        (folder / f"{number}.rss").write_text(feed)


def store_slowly(observe):
    """Let the database take a while for every document."""
    observe(f"from django.db import connection; connection.cursor().execute({STORE_SLOWLY!r})")


def wait_until_half_way(observe):
    """Wait until the newest sync has stored half of its documents."""
    script = (
        "import time\nfrom retrieval.models import Document, Sync\ns = Sync.objects.first()\n"
        f"until = time.monotonic() + {_WAIT_SECONDS}\n"
        f"while Document.objects.filter(connection=s.connection).count() < {_FEEDS // 2} and time.monotonic() < until:"
        " time.sleep(0.05)\n"
        "s.refresh_from_db(); print(s.status)"
    )
    assert observe(script).split() == ["running"]


def wait_for_more(observe):
    """Wait until documents of the newest sync are stored beyond those that are there now."""
    script = (
        "import time\nfrom retrieval.models import Document, Sync\ns = Sync.objects.first()\n"
        "stored = Document.objects.filter(connection=s.connection)\nbefore = stored.count()\n"
        f"until = time.monotonic() + {_WAIT_SECONDS}\n"
        "while stored.count() == before and time.monotonic() < until: time.sleep(0.05)\n"
        f"print(before < stored.count() < {_FEEDS})"
    )
    assert observe(script).split() == ["True"]


def assert_is_unfinished(observe):
    script = "from retrieval.models import Sync; s = Sync.objects.first(); print(s.status)"
    assert observe(script).split()[0] in {"queued", "running"}


@nightly
@pytest.mark.timeout(900)
def test_a_sync_over_files_whose_worker_quits_is_finished_by_the_next_worker(installation, observe, tmp_path):
    many_feeds(tmp_path / "ibis", "ibis")
    store_slowly(observe)
    observe.manage("ingest", str(tmp_path / "ibis"), "--connection", "ibis", "--queue")
    with worker(installation, stop=signal.SIGQUIT):
        wait_until_half_way(observe)
    assert_is_unfinished(observe)
    with worker(installation):
        status, added, chunks = wait_until_searchable(observe, "ibis")
    # Not one is lost, and none is there or counted twice.
    assert (status, int(added), int(chunks)) == ("done", _FEEDS, _CHUNKS)


def rows(observe, word):
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
    return json.loads(observe(script))


def kill_postgres(environment):
    """Kill every process of the embedded server, as a crash of the machine would."""
    pid = int((Path(environment["CORECUBE_VAR_DIR"]) / "postgres" / "postmaster.pid").read_text().split()[0])
    os.kill(pid, signal.SIGKILL)


def kill_at_once(environment, observe):
    """Kill a worker half way, and the database and the queue with it."""
    with worker(environment, stop=signal.SIGKILL):
        wait_until_half_way(observe)
        kill_services(environment)


def kill_one_by_one(environment, observe):
    """Kill a worker half way, and the database and the queue while the next one is at work."""
    with worker(environment, stop=signal.SIGKILL):
        wait_until_half_way(observe)
    assert_is_unfinished(observe)
    with worker(environment):
        wait_for_more(observe)
        kill_services(environment)


def kill_services(environment):
    """Kill the database and the queue, which is gone with all that was in it."""
    kill_postgres(environment)
    os.kill(int(redis_pid(environment["REDIS_URL"])), signal.SIGKILL)


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("word", "kill"), [("heron", kill_at_once), pytest.param("egret", kill_one_by_one, marks=nightly)]
)
def test_after_kills_of_worker_database_and_queue_the_store_is_what_it_would_have_been(
    installation, observe, redis_url, tmp_path, word, kill
):
    many_feeds(tmp_path / word, word)
    observe.manage("ingest", str(tmp_path / word), "--connection", f"undisturbed-{word}")
    store_slowly(observe)
    environment = {**installation, "REDIS_URL": redis_url}
    manage(environment, "ingest", str(tmp_path / word), "--connection", word, "--queue")
    kill(environment, observe)
    observe.end()
    # Files take the queue's place.
    with worker(installation):
        observe.begin()
        status, added, chunks = wait_until_searchable(observe, word)
    # As many again are those of the undisturbed sync.
    assert (status, int(added), int(chunks)) == ("done", _FEEDS, 2 * _CHUNKS)
    disturbed, undisturbed = rows(observe, word), rows(observe, f"undisturbed-{word}")
    # Every number of every vector too, bit by bit.
    assert disturbed == undisturbed
    assert len(undisturbed[2]) == _CHUNKS
