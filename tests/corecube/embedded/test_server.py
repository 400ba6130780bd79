"""The embedded server, for real: every test starts PostgreSQL in a folder of its own or shares one of this module."""

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import psycopg
import pytest

from corecube.embedded.postmaster import read_postmaster
from corecube.embedded.server import embedded_server, ensure_database, log_path, release, restarted_server
from corecube.errors import DatabaseUnavailableError
from corecube.process import exclusive
from tests.race import until

OTHER_USER = """
import os, sys, time
from pathlib import Path
from corecube.embedded.server import embedded_server
server = embedded_server(Path(sys.argv[1]))
{}
"""


@pytest.fixture(scope="module")
def folder():
    """A folder that the server's account can reach: pytest closes its own again and again."""
    with tempfile.TemporaryDirectory(prefix="corecube-test-") as name:
        yield Path(name)


@pytest.fixture(scope="module")
def made_dir(folder):
    """A data directory whose server has been started before."""
    data_dir = folder / "var" / "postgres"
    embedded_server(data_dir)
    release(data_dir)
    return data_dir


@pytest.fixture
def data_dir(made_dir):
    yield made_dir
    release(made_dir)
    wait_until_ended(made_dir)


@pytest.fixture
def moved(made_dir):
    """Move the data directory elsewhere for a test."""
    moves = []

    def move(target):
        wait_until_ended(made_dir)
        target.parent.mkdir(parents=True, exist_ok=True)
        moves.append(made_dir.rename(target))
        return target

    yield move
    for place in moves:
        release(place)
        place.rename(made_dir)


def wait_until_ended(data_dir):
    """Return when no process of the server is left; the test's timeout is the limit."""
    with exclusive(data_dir.with_name(f"{data_dir.name}.server.lock")):
        pass


def accepts(data_dir):
    postmaster = read_postmaster(data_dir)
    return postmaster is not None and postmaster.accepts()


def other_user(data_dir, then):
    """Start another process that uses the server; it prints a line when it does."""
    code = OTHER_USER.format(then)
    return subprocess.Popen([sys.executable, "-c", code, data_dir], stdout=subprocess.PIPE, stdin=subprocess.PIPE)


def test_a_new_server_has_pgvector_and_reads_letters_of_every_language(data_dir):
    with embedded_server(data_dir).connect("postgres") as connection:
        (version,) = connection.execute(
            "SELECT default_version FROM pg_available_extensions WHERE name = 'vector'"
        ).fetchone()
        (lexemes,) = connection.execute("SELECT to_tsvector('simple', 'Straße ÜBER')::text").fetchone()
    assert version >= "0.8"
    assert lexemes == "'straße':1 'über':2"


def test_the_server_suits_a_search(data_dir):
    with embedded_server(data_dir).connect("postgres") as connection:
        shown = {
            name: connection.execute(f"SHOW {name}").fetchone()[0]
            for name in ("jit", "max_connections", "listen_addresses")
        }
    assert shown["jit"] == "off"
    assert int(shown["max_connections"]) >= 2 * 96 + 16
    assert shown["listen_addresses"] == ""


def test_the_last_user_stops_the_server(data_dir):
    embedded_server(data_dir)
    with other_user(data_dir, "print('ready', flush=True); input()") as other:
        other.stdout.readline()
        release(data_dir)
        assert accepts(data_dir)
        other.stdin.close()
    wait_until_ended(data_dir)
    assert not accepts(data_dir)


def test_two_users_share_one_server(data_dir):
    embedded_server(data_dir)
    before = read_postmaster(data_dir).pid
    with other_user(data_dir, "print('ready', flush=True)") as other:
        other.stdout.readline()
    assert read_postmaster(data_dir).pid == before


def test_users_that_come_at_once_start_one_server(data_dir):
    then = "from corecube.embedded.postmaster import read_postmaster\n"
    then += "print(read_postmaster(server.data_dir).pid, flush=True)\nsys.stdin.read()"
    others = [other_user(data_dir, then) for _ in range(4)]
    answers = {other.stdout.readline() for other in others}
    for other in others:
        other.communicate()
    assert len(answers) == 1


def test_a_killed_user_leaves_no_server_behind(data_dir):
    with other_user(data_dir, "print('ready', flush=True); time.sleep(600)") as other:
        other.stdout.readline()
        other.kill()
    wait_until_ended(data_dir)
    assert not accepts(data_dir)


def test_ctrl_c_in_the_terminal_does_not_reach_the_server(data_dir):
    embedded_server(data_dir)
    assert os.getsid(read_postmaster(data_dir).pid) != os.getsid(0)


def test_a_forked_child_that_ends_leaves_the_server_to_its_parent(data_dir):
    fork = "child = os.fork()\nif not child: sys.exit()\nos.waitpid(child, 0)\nprint('ended', flush=True)\ninput()"
    with other_user(data_dir, fork) as other:
        other.stdout.readline()
        assert accepts(data_dir)
        other.stdin.close()


def test_a_forked_child_keeps_the_server_when_its_parent_has_ended(data_dir):
    fork = "if os.fork(): os._exit(0)\nprint('ready', flush=True)\nsys.stdin.read()"
    with other_user(data_dir, fork) as other:
        other.stdout.readline()
        other.wait()
        assert accepts(data_dir)
        other.stdin.close()


def test_a_killed_server_recovers_when_it_is_used_again(data_dir):
    with embedded_server(data_dir).connect("postgres") as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS kept (number int)")
        connection.execute("INSERT INTO kept VALUES (7)")
    os.kill(read_postmaster(data_dir).pid, signal.SIGKILL)
    release(data_dir)
    with embedded_server(data_dir).connect("postgres") as connection:
        assert connection.execute("SELECT number FROM kept").fetchone() == (7,)


def test_a_killed_server_is_started_again_for_a_process_that_uses_it(data_dir):
    embedded_server(data_dir)
    before = read_postmaster(data_dir).pid
    os.kill(before, signal.SIGKILL)
    until(lambda: not accepts(data_dir), seconds=60)
    with restarted_server(data_dir).connect("postgres") as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)
    assert read_postmaster(data_dir).pid != before
    release(data_dir)
    assert not accepts(data_dir)


def test_a_server_that_runs_is_not_started_again(data_dir):
    server = embedded_server(data_dir)
    before = read_postmaster(data_dir).pid
    assert restarted_server(data_dir) == server
    assert read_postmaster(data_dir).pid == before


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a process that its parent has ended")
def test_a_server_whose_keeper_and_last_user_were_killed_is_not_left_behind(data_dir):
    with other_user(data_dir, "print('ready', flush=True); time.sleep(600)") as other:
        other.stdout.readline()
        main = read_postmaster(data_dir).pid
        keeper = int(Path(f"/proc/{main}/stat").read_text().rpartition(")")[2].split()[1])
        os.kill(keeper, signal.SIGKILL)
        other.kill()
    wait_until_ended(data_dir)
    assert not accepts(data_dir)


def test_a_killed_server_with_a_folder_of_its_own_for_the_socket_uses_it_again(folder, moved):
    data_dir = moved(folder / ("z" * 120) / "postgres")
    before = embedded_server(data_dir).socket_dir
    os.kill(read_postmaster(data_dir).pid, signal.SIGKILL)
    until(lambda: not accepts(data_dir), seconds=60)
    assert restarted_server(data_dir).socket_dir == before
    release(data_dir)
    assert not Path(before).exists()


def test_a_pid_file_whose_number_another_process_has_now_does_not_matter(data_dir):
    lines = [str(os.getpid()), str(data_dir), "1", "5432", str(data_dir), "", "1 1", "ready"]
    (data_dir / "postmaster.pid").write_text("\n".join(lines) + "\n")
    (data_dir / ".s.PGSQL.5432.lock").write_text("\n".join(lines) + "\n")
    embedded_server(data_dir)
    assert accepts(data_dir)


def test_a_missing_database_is_created_once(data_dir):
    server = embedded_server(data_dir)
    for _ in range(2):
        ensure_database(server, "odd name")
        ensure_database.cache_clear()
    with server.connect("odd name") as connection:
        assert connection.execute("SELECT current_database()").fetchone() == ("odd name",)


def test_no_statement_or_detail_reaches_the_log(data_dir):
    with embedded_server(data_dir).connect("postgres") as connection:
        connection.execute("CREATE TEMPORARY TABLE words (word text PRIMARY KEY)")
        connection.execute("INSERT INTO words VALUES ('zanzibar')")
        with pytest.raises(psycopg.errors.UniqueViolation):
            connection.execute("INSERT INTO words VALUES ('zanzibar')")
    log = log_path(data_dir).read_text()
    assert "words_pkey" in log
    assert "zanzibar" not in log


@pytest.mark.parametrize("name", ["with space", "x" * 120, 'a, "b"'])
def test_the_folder_may_have_any_name(folder, moved, name):
    data_dir = moved(folder / name / "postgres")
    with embedded_server(data_dir).connect("postgres") as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)


def test_a_folder_made_for_the_socket_goes_with_the_server(folder, moved):
    data_dir = moved(folder / ("y" * 120) / "postgres")
    socket_dir = Path(embedded_server(data_dir).socket_dir)
    assert socket_dir.stat().st_mode & 0o777 == 0o700
    release(data_dir)
    assert not socket_dir.exists()


def test_a_set_up_that_was_interrupted_is_made_anew(folder):
    unfinished = folder / "new" / "postgres.new"
    unfinished.mkdir(parents=True)
    (unfinished / "PG_VERSION").write_text("18\n")
    embedded_server(folder / "new" / "postgres")
    release(folder / "new" / "postgres")
    assert not unfinished.exists()


def test_data_of_another_major_version_is_refused(folder):
    data_dir = folder / "old" / "postgres"
    data_dir.mkdir(parents=True)
    (data_dir / "PG_VERSION").write_text("12\n")
    with pytest.raises(DatabaseUnavailableError, match="created by PostgreSQL 12"):
        embedded_server(data_dir)


def test_a_failed_start_is_explained_by_the_log_and_can_be_tried_again(data_dir):
    configuration = (data_dir / "postgresql.conf").read_text()
    (data_dir / "postgresql.conf").write_text("nonsense = 1\n")
    with pytest.raises(DatabaseUnavailableError, match="nonsense"):
        embedded_server(data_dir)
    (data_dir / "postgresql.conf").write_text(configuration)
    embedded_server(data_dir)
    assert accepts(data_dir)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_as_root_the_server_runs_as_the_owner_of_its_data(data_dir):
    embedded_server(data_dir)
    process = os.stat(f"/proc/{read_postmaster(data_dir).pid}")  # noqa: PTH116 -- not a file
    assert process.st_uid == data_dir.stat().st_uid != 0


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_as_root_the_folders_above_the_data_stay_closed(folder, moved):
    closed = folder / "closed"
    closed.mkdir(mode=0o700)
    data_dir = moved(closed / "postgres")
    with embedded_server(data_dir).connect("postgres") as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS spread AS SELECT generate_series(1, 200000) AS number")
        connection.execute("SET max_parallel_workers_per_gather = 2; SET work_mem = '64kB'; CHECKPOINT")
        ordered = "SELECT count(*) FROM (SELECT number FROM spread ORDER BY number DESC OFFSET 1) AS rest"
        assert connection.execute(ordered).fetchone() == (199_999,)
    assert closed.stat().st_mode & 0o777 == 0o700


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_as_root_a_first_start_needs_no_open_folder(folder):
    closed = folder / "first"
    closed.mkdir(mode=0o700)
    with embedded_server(closed / "var" / "postgres").connect("postgres") as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)
    release(closed / "var" / "postgres")
    assert closed.stat().st_mode & 0o777 == 0o700
