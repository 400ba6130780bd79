"""`manage.py start` for real, twice, in a folder of its own; what is slow about it happens once for all tests."""

import signal
import socket
import tempfile
import urllib.request
from pathlib import Path

import pytest
from django.core.management import call_command

from corecube.errors import ConfigError
from corecube.management.commands.start import _free_port
from corecube.process import exclusive
from tests.environment import link_downloads
from tests.migrated import copy_migrated_server
from tests.profiles import nightly
from tests.started import start_installation, until_ready


@pytest.fixture(scope="module")
def var():
    """A new installation's folder, with the model that this one has and a migrated database."""
    call_command("models", "fetch", verbosity=0)
    with tempfile.TemporaryDirectory(prefix="corecube-test-") as name:
        link_downloads(Path(name))
        copy_migrated_server(Path(name))
        yield Path(name)


@pytest.fixture
def start(var):
    """Start the installation, with a web server on a port that is free now; what still runs at the end is killed."""
    started = []

    def run(*options, folder=var, **variables):
        started.append(start_installation(*options, folder=folder, **variables))
        return started[-1]

    yield run
    for process in started:
        process.kill()
        process.communicate()


def ended(process):
    """Return the exit status, what was still printed, and the errors."""
    out, errors = process.communicate()
    return process.returncode, out, errors


def is_empty(var):
    """Wait until no process of the database is left; the test's timeout is the limit."""
    with exclusive(var / "postgres.server.lock"):
        return True


@pytest.fixture(scope="module")
def serving(var):
    """Return the process of a start that is ready, and its address."""
    process = start_installation(folder=var)
    yield process, until_ready(process)[1]
    process.kill()
    process.communicate()


def test_a_second_start_on_the_same_data_is_refused(serving, start):
    status, _, errors = ended(start())
    assert status == 1
    assert "already running" in errors
    assert serving[0].poll() is None


def serves_until(number, var, process, address):
    """Send the signal to a start that is ready; it leaves nothing behind."""
    with urllib.request.urlopen(f"{address}/login/") as answer:
        assert answer.status == 200
    process.send_signal(number)
    status, out, errors = ended(process)
    assert (status, errors) == (0, "")
    assert "Stopping" in out
    assert is_empty(var)
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.1", int(address.rpartition(":")[2])))


def test_it_serves_until_it_is_interrupted_and_leaves_nothing_behind(var, serving):
    serves_until(signal.SIGINT, var, *serving)


@nightly
def test_it_serves_until_it_is_terminated_and_leaves_nothing_behind(var, start):
    process = start()
    serves_until(signal.SIGTERM, var, process, until_ready(process)[1])


def test_the_password_is_printed_at_the_first_start_alone(var, start):
    fresh = var / "fresh"
    fresh.mkdir()
    link_downloads(fresh)
    first, second = (ended(start("--prepare-only", folder=fresh)) for _ in range(2))
    assert first[0] == second[0] == 0
    assert "admin" in first[1]
    assert "admin" not in second[1]


def test_a_start_closes_what_an_earlier_release_left_open(var, start):
    (var / "uploads" / "7").mkdir(parents=True)
    (var / "uploads" / "7" / "a.md").touch()
    for path in (var, var / "uploads", var / "uploads" / "7", var / "uploads" / "7" / "a.md"):
        path.chmod(0o755)
    status, _, errors = ended(start("--prepare-only"))
    assert (status, errors) == (0, "")
    assert var.stat().st_mode & 0o777 == 0o700
    found = [it for it in var.rglob("*") if not it.is_symlink() and it.lstat().st_mode & 0o077]
    assert found == []


def test_a_program_that_dies_stops_the_rest_and_is_explained(var, start):
    process = start(REDIS_URL="nonsense://")
    status, _, errors = ended(process)
    assert status == 1
    assert "The worker ended unexpectedly" in errors
    assert is_empty(var)


def test_a_database_that_cannot_be_used_is_said_in_one_sentence(start):
    process = start(DATABASE_URL="postgres://nobody@127.0.0.1:1/none")
    status, _, errors = ended(process)
    assert status == 1
    assert errors.startswith("CommandError: The server in DATABASE_URL is not available")
    assert len(errors.splitlines()) == 1


def test_a_taken_port_that_was_asked_for_is_an_error():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ConfigError, match=f"port {port}"):
            _free_port("127.0.0.1", port)


def test_without_a_wish_a_free_port_is_found():
    port = _free_port("127.0.0.1", 0)
    with socket.create_server(("127.0.0.1", port)):
        assert _free_port("127.0.0.1", 0) > port


def test_an_address_that_is_not_this_machines_is_an_error():
    with pytest.raises(ConfigError, match=r"cannot listen on 192\.0\.2\.1"):
        _free_port("192.0.2.1", 0)
