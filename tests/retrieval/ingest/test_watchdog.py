"""Workers that hang, and jobs that are cancelled, with real workers in an installation of its own."""

import json
import os
import signal
import socketserver
import subprocess
import sys
import threading
import time
from contextlib import contextmanager, suppress

import pytest
from django.conf import settings

from retrieval.ingest.watchdog import EXIT_CODE
from tests.installation import Observer, new_installation
from tests.processes import LIMITED, processes
from tests.retrieval.conftest import RerankHandler, http_answer

_MODEL = settings.CORECUBE_MODELS_DIR / settings.CORECUBE_MODEL
#: A busy machine is slow, and that is no failure.
_WAIT_SECONDS = 240
_DIMENSIONS = 8

pytestmark = pytest.mark.timeout(900)


class Embedder(socketserver.ThreadingTCPServer):
    """An embedding service that never answers for texts with the word "basilisk"."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 32

    def __init__(self):
        super().__init__(("127.0.0.1", 0), RerankHandler)
        self.requests = []
        self.over = threading.Event()
        #: How many requests it keeps waiting.
        self.hanging = 0

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_address[1]}/embeddings"

    def answer(self, out, body):
        if any("basilisk" in text for text in body["input"]):
            self.hanging += 1
            self.over.wait()
        rows = [{"index": place, "embedding": [1.0] * _DIMENSIONS} for place in range(len(body["input"]))]
        out.write(http_answer({"data": rows}))


@pytest.fixture(scope="module")
def embedder():
    with Embedder() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield server
        server.over.set()
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def installation(embedder):
    """Return the environment of an installation whose steps may take three seconds, and whose model is that service."""
    if not (_MODEL / "manifest.json").is_file():
        pytest.skip(f"the model {_MODEL.name} is not here: run manage.py models fetch")
    service = {
        "CORECUBE_EMBEDDER": "openai",
        "CORECUBE_EMBEDDER_URL": embedder.url,
        "CORECUBE_EMBEDDER_MODEL": "stand-in",
        "CORECUBE_EMBEDDER_DIMENSIONS": str(_DIMENSIONS),
        "CORECUBE_EMBEDDER_ENCODING": "float",
        "CORECUBE_EMBEDDER_TIMEOUT": "600",
    }
    with new_installation(CORECUBE_LOST_SECONDS="4", CORECUBE_WARM_UP="no", **service) as environment:
        yield environment


@pytest.fixture(scope="module")
def observe(installation):
    observer = Observer(installation)
    yield observer
    observer.end()


@contextmanager
def worker(environment, **variables):
    """Run a worker with one process in its pool, as an installation does."""
    process = subprocess.Popen(
        [sys.executable, "-m", "celery", "-A", "corecube", "worker", "--pool", "prefork", "--concurrency", "1"],
        cwd=settings.BASE_DIR,
        env={**environment, **variables},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        process.send_signal(signal.SIGQUIT)
        with suppress(subprocess.TimeoutExpired):
            process.wait(timeout=1)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def queue(observe, folder, name, texts):
    folder.mkdir()
    for file, text in texts.items():
        (folder / file).write_text(text)
    observe.manage("ingest", str(folder), "--connection", name, "--queue")


def job(observe, name):
    """Return the state of a connection's job, its counts, and its problems."""
    script = (
        "import json\nfrom django.utils import timezone\nfrom retrieval.ingest.jobs import job_states\n"
        "from retrieval.models import Sync, SyncItem\n"
        f"s = Sync.objects.filter(connection__slug={name!r}).select_related('connection').first()\n"
        "p = [[i.external_id, i.reason, i.message] for i in SyncItem.objects.filter(sync=s, state='failed')]\n"
        "print(json.dumps([job_states([s], timezone.now())[0].state, s.added, s.failed, p]))"
    )
    return json.loads(observe(script))


def cancel(observe, name):
    """Cancel a connection's job and return the state that it is in then."""
    script = (
        "from retrieval.ingest.services import cancel_sync\nfrom retrieval.models import Sync\n"
        f"s = Sync.objects.filter(connection__slug={name!r}).first()\nprint(cancel_sync(s, actor=None).status)"
    )
    return observe(script).strip()


def wait_for(condition):
    ends = time.monotonic() + _WAIT_SECONDS
    while not (found := condition()):
        assert time.monotonic() < ends
        time.sleep(0.3)
    return found


def test_an_item_whose_step_makes_no_progress_fails_alone_and_the_job_goes_on(installation, observe, tmp_path):
    texts = {f"{number}.md": f"# Page {number}\n\nText {number}.\n" for number in range(4)}
    queue(observe, tmp_path / "hung", "hung", {**texts, "3.md": "# Page 3\n\nA basilisk.\n"})
    with worker(installation, CORECUBE_STEP_SECONDS="2"):
        wait_for(lambda: job(observe, "hung")[0] not in {"queued", "running", "stalled"})
    state, added, failed, problems = job(observe, "hung")
    assert (state, added, failed) == ("done", 3, 1)
    message = "Embedding it made no progress for 2 seconds (CORECUBE_STEP_SECONDS)."
    assert problems == [["3.md", "too_slow", message]]


def test_a_job_is_cancelled_once_the_service_that_it_waited_for_is_left_alone(
    installation, observe, embedder, tmp_path
):
    before = embedder.hanging
    queue(observe, tmp_path / "waiting", "waiting", {"a.md": "# A\n\nA basilisk.\n"})
    queue(observe, tmp_path / "next", "next", {"a.md": "# A\n\nText.\n"})
    with worker(installation) as running:
        wait_for(lambda: embedder.hanging > before)
        pool = processes("celery", session=running.pid)
        assert cancel(observe, "waiting") == "cancelling"
        wait_for(lambda: job(observe, "waiting")[0] == "cancelled")
        # The process that waited is gone, and another one goes on with what is to be done.
        assert set(pool) - set(processes("celery", session=running.pid))
        wait_for(lambda: job(observe, "next")[0] == "done")
    assert job(observe, "waiting")[1] == 0


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has /proc")
def test_a_job_is_cancelled_once_the_process_that_parsed_for_it_is_killed(installation, observe, tmp_path):
    queue(observe, tmp_path / "first", "first", {"a.md": "# A\n\nText.\n"})
    with worker(installation) as running:
        wait_for(lambda: job(observe, "first")[0] == "done")
        (child,) = processes(LIMITED, session=running.pid)
        os.kill(child, signal.SIGSTOP)
        queue(observe, tmp_path / "stuck", "stuck", {"a.md": "# A\n\nText.\n"})
        wait_for(lambda: job(observe, "stuck")[0] == "running")
        time.sleep(1)
        assert cancel(observe, "stuck") == "cancelling"
        wait_for(lambda: job(observe, "stuck")[0] == "cancelled")
        assert child not in processes(LIMITED, session=running.pid)
    assert job(observe, "stuck")[1:] == [0, 0, []]


def test_a_job_whose_worker_is_killed_while_it_is_cancelled_is_ended_by_the_next(
    installation, observe, embedder, tmp_path
):
    before = embedder.hanging
    queue(observe, tmp_path / "orphan", "orphan", {"a.md": "# A\n\nA basilisk.\n"})
    with worker(installation) as running:
        wait_for(lambda: embedder.hanging > before)
        os.killpg(running.pid, signal.SIGKILL)
        running.wait()
    assert cancel(observe, "orphan") == "cancelling"
    with worker(installation):
        wait_for(lambda: job(observe, "orphan")[0] == "cancelled")


def test_a_step_that_hangs_ends_a_command_and_the_next_one_goes_on(installation, embedder, tmp_path):
    folder = tmp_path / "by-hand"
    folder.mkdir()
    (folder / "a.md").write_text("# A\n\nA basilisk.\n")
    (folder / "b.md").write_text("# B\n\nText.\n")
    command = [sys.executable, "manage.py", "ingest", str(folder), "--connection", "by-hand"]
    environment = {**installation, "CORECUBE_STEP_SECONDS": "2"}

    def run():
        return subprocess.run(
            command, cwd=settings.BASE_DIR, env=environment, capture_output=True, text=True, check=False
        )

    ended = run()
    assert ended.returncode == EXIT_CODE
    assert "watchdog.ends_process" in ended.stderr
    (folder / "a.md").write_text("# A\n\nAn ordinary text.\n")
    done = run()
    assert "2 added" in done.stdout, done.stderr
