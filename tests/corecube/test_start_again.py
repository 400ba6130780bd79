"""`manage.py start` while one of its processes, or the embedded database, is killed; one start serves all tests."""

import os
import signal
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from contextlib import suppress
from pathlib import Path

import psycopg
import pytest
from django.conf import settings
from django.core.management import call_command

from corecube.embedded.postmaster import read_postmaster
from corecube.process import exclusive
from tests.environment import environment_of, link_downloads
from tests.installation import STORE_SLOWLY
from tests.migrated import copy_migrated_server
from tests.race import until
from tests.started import child_named, children, descendants, is_running, start_installation, until_ready

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the processes are found in /proc")
#: For machines that have a lot else to do.
_PATIENCE = 240


class Started:
    """A running installation, as somebody outside sees it."""

    def __init__(self, process, address, var):
        self.process, self.address, self.var = process, address, var
        self.data = var / "postgres"

    def web(self):
        return child_named(self.process.pid, "uvicorn")

    def worker(self):
        return child_named(self.process.pid, "celery")

    def postmaster(self):
        found = read_postmaster(self.data)
        return found.pid if found else None

    def keeper(self):
        return int(Path(f"/proc/{self.postmaster()}/stat").read_text().rpartition(")")[2].split()[1])

    def status(self, path):
        """Return the status of an answer; 0 while nobody listens."""
        # The key makes the web server ask the database.
        request = urllib.request.Request(self.address + path, headers={"Authorization": "Bearer cc_any"})
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return answer.status
        except urllib.error.HTTPError as error:
            return error.code
        except OSError:
            return 0

    def asks_the_database(self):
        """Whether a request that needs the database is answered: here, that the key is not valid."""
        return self.status("/v1/models") == 401

    def psql(self, statement):
        """Return the first row, also None while the server is away."""
        parameters = {"host": str(self.data), "user": "postgres", "dbname": "corecube", "autocommit": True}
        try:
            with psycopg.connect(**parameters) as connection:
                return connection.execute(statement).fetchone()
        except psycopg.OperationalError:
            return None

    def manage(self, *arguments):
        return subprocess.run(
            [sys.executable, "manage.py", *arguments],
            cwd=settings.BASE_DIR,
            env=environment_of(self.var),
            capture_output=True,
            text=True,
            check=False,
        )


@pytest.fixture(scope="module")
def started():
    call_command("models", "fetch", verbosity=0)
    with tempfile.TemporaryDirectory(prefix="corecube-test-") as name:
        var = Path(name)
        link_downloads(var)
        copy_migrated_server(var)
        process = start_installation(folder=var, CORECUBE_LOST_SECONDS="5")
        try:
            _, address = until_ready(process)
            found = Started(process, address, var)
            yield found
            everything = descendants(process.pid)
            process.send_signal(signal.SIGTERM)
            assert process.wait(_PATIENCE) == 0
            assert not any(is_running(pid) for pid in everything)
        finally:
            process.kill()
            process.communicate()
        with exclusive(var / "postgres.server.lock"):
            pass  # no process of the database is left


@pytest.fixture
def well(started):
    until(started.asks_the_database, _PATIENCE)
    return started


@pytest.mark.timeout(600)
@pytest.mark.parametrize(("killed", "other"), [("web", "worker"), ("worker", "web")])
def test_a_killed_program_is_started_again_and_the_other_is_left_alone(well, killed, other):
    before, untouched = getattr(well, killed)(), getattr(well, other)()
    orphans = children(before)
    os.kill(before, signal.SIGKILL)
    until(lambda: getattr(well, killed)() not in {None, before}, _PATIENCE)
    until(well.asks_the_database, _PATIENCE)
    assert getattr(well, other)() == untouched
    # They are killed at once, and end a moment later.
    until(lambda: not any(is_running(pid) for pid in orphans), _PATIENCE)


def kill_main(started):
    return [started.postmaster()]


def kill_keeper(started):
    return [started.keeper()]


def kill_both(started):
    return [started.keeper(), started.postmaster()]


def kill_everything(started):
    main = started.postmaster()
    return [started.keeper(), main, *children(main)]


@pytest.mark.timeout(600)
@pytest.mark.parametrize("victims", [kill_main, kill_keeper, kill_both, kill_everything])
def test_a_killed_database_is_started_again_and_the_programs_stay(well, victims):
    programs, before = (well.web(), well.worker()), well.postmaster()
    for pid in victims(well):
        with suppress(ProcessLookupError):  # it has ended with one of the others
            os.kill(pid, signal.SIGKILL)
    # Nobody asks for it: `start` itself looks after it.
    until(lambda: (found := read_postmaster(well.data)) and found.pid != before and found.accepts(), _PATIENCE)
    until(well.asks_the_database, _PATIENCE)
    assert (well.web(), well.worker()) == programs
    until(lambda: well.status("/readyz") == 200, _PATIENCE)


@pytest.mark.timeout(600)
def test_a_database_whose_session_is_killed_serves_again(well):
    main = well.postmaster()
    with psycopg.connect(host=str(well.data), user="postgres", dbname="corecube", autocommit=True) as connection:
        os.kill(connection.info.backend_pid, signal.SIGKILL)
        with pytest.raises(psycopg.OperationalError):
            connection.execute("SELECT 1")
    until(well.asks_the_database, _PATIENCE)
    assert well.postmaster() == main


@pytest.mark.timeout(600)
def test_a_session_at_work_that_outlives_a_killed_server_does_not_keep_it_down(well):
    endless = "SELECT count(*) FROM generate_series(1, 100000000000)"
    parameters = {"host": str(well.data), "user": "postgres", "dbname": "corecube"}
    code = f"import psycopg; psycopg.connect(**{parameters!r}).execute({endless!r})"
    with subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.DEVNULL) as client:
        count = "SELECT pid FROM pg_stat_activity WHERE query LIKE 'SELECT count(*) FROM generate%'"
        until(lambda: well.psql(count), _PATIENCE)
        (busy,) = well.psql(count)
        before = well.postmaster()
        for pid in kill_both(well):
            os.kill(pid, signal.SIGKILL)
        until(lambda: well.postmaster() not in {None, before} and well.asks_the_database(), _PATIENCE)
        assert not is_running(busy)
        client.wait()


@pytest.mark.timeout(600)
def test_a_database_that_hangs_is_said_and_comes_back(well):
    until(lambda: well.status("/readyz") == 200, _PATIENCE)
    main = well.postmaster()
    stopped = [main, *children(main)]
    for pid in stopped:
        os.kill(pid, signal.SIGSTOP)
    try:
        assert well.status("/healthz") == 200
        assert well.status("/readyz") == 503
        assert well.status("/v1/models") == 503
    finally:
        for pid in stopped:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
    until(lambda: well.status("/readyz") == 200 and well.asks_the_database(), _PATIENCE)
    assert well.postmaster() == main


@pytest.mark.timeout(900)
def test_a_job_goes_on_when_the_database_is_back(well):
    folder = well.var / "pages"
    folder.mkdir()
    pages = 20
    for number in range(pages):
        text = "\n\n".join(f"Page {number}, section {part}: valves and gaskets of pump {part}." for part in range(4))
        (folder / f"{number}.md").write_text(f"# Page {number}\n\n{text}\n")
    with psycopg.connect(host=str(well.data), user="postgres", dbname="corecube", autocommit=True) as connection:
        connection.execute(STORE_SLOWLY)
    done = well.manage("ingest", str(folder), "--connection", "pages", "--queue")
    assert done.returncode == 0, done.stderr
    until(lambda: well.psql("SELECT 1 FROM retrieval_document LIMIT 1"), _PATIENCE)
    assert well.psql("SELECT count(*) FROM retrieval_document")[0] < pages
    os.kill(well.postmaster(), signal.SIGKILL)
    until(well.asks_the_database, _PATIENCE)
    state = "SELECT status, added FROM retrieval_sync WHERE status NOT IN ('queued', 'running')"
    until(lambda: well.psql(state), _PATIENCE)
    assert well.psql(state) == ("done", pages)
