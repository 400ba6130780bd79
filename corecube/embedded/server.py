"""Starts and shares the embedded PostgreSQL server.

There are three locks next to the data directory:
users   shared lock of every process that uses the server; the keeper waits for the exclusive lock
start   lock of the process that looks for the server or starts it
server  lock of the keeper and all processes of the server, which inherit it
"""

import logging
import os
import pwd
import signal
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Final

import psycopg
from psycopg import errors, sql

from corecube.embedded import install
from corecube.embedded.postmaster import PORT, Postmaster, cluster_name, drop_reused_pid, end_orphans, read_postmaster
from corecube.embedded.upgrade import to_this_major
from corecube.errors import DatabaseUnavailableError
from corecube.logs import last_lines, open_log
from corecube.process import end_with_parent, exclusive, open_lock, share, try_exclusive

logger = logging.getLogger(__name__)

_SOCKET_PATH_BYTES: Final = 107
_CONNECT_SECONDS: Final = 10
_POLL_SECONDS: Final = 0.05
_one_thread: Final = threading.Lock()
_in_use: "Final[dict[Path, EmbeddedServer]]" = {}


@dataclass(frozen=True, slots=True)
class EmbeddedServer:
    """A running embedded server that this process uses."""

    data_dir: Path
    socket_dir: str
    users_lock: int  #: The open lock file of this user.
    port: str = field(default=PORT, init=False)
    user: str = field(default=install.SUPERUSER, init=False)

    def connect(self, database: str) -> "psycopg.Connection[tuple[object, ...]]":
        """Return a new connection in autocommit mode, outside Django's pool."""
        return psycopg.connect(
            host=self.socket_dir,
            port=self.port,
            user=self.user,
            dbname=database,
            autocommit=True,
            connect_timeout=_CONNECT_SECONDS,
        )


def embedded_server(data_dir: Path) -> EmbeddedServer:
    """Return the server of a data directory, which is started if needed.

    The process is a user until it ends or calls `release`, with its forked children. Raises DatabaseUnavailableError.
    """
    if server := _in_use.get(data_dir):
        return server
    with _one_thread:
        if data_dir not in _in_use:
            _in_use[data_dir] = _use(data_dir)
        return _in_use[data_dir]


def restarted_server(data_dir: Path) -> EmbeddedServer:
    """Return the server, restarted if it has stopped, to a process that is a user; raise DatabaseUnavailableError."""
    before = embedded_server(data_dir)
    found = _found_or_started(data_dir, before.users_lock)
    if data_dir in _in_use:  # not released in the meantime
        _in_use[data_dir] = found
    return found


def users_lock(data_dir: Path) -> int | None:
    """Return the descriptor of the lock that makes this process a user of the server; None if it is not one."""
    server = _in_use.get(data_dir)
    return server.users_lock if server else None


@cache
def ensure_database(server: EmbeddedServer, name: str) -> None:
    """Create a database on the server unless it exists."""
    with server.connect("postgres") as connection:
        if connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [name]).fetchone():
            return
        try:
            connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        except (errors.DuplicateDatabase, errors.UniqueViolation):
            return  # another process was first


def release(data_dir: Path) -> None:
    """Stop using the server, with all connections closed, and wait until it has stopped or is used by others."""
    server = _in_use.pop(data_dir, None)
    if server is None:
        return
    ensure_database.cache_clear()
    os.close(server.users_lock)
    lock = open_lock(_lock_path(data_dir, "users"))
    try:
        if try_exclusive(lock):
            _stop(data_dir)
        else:
            share(lock)  # waits for a keeper that is stopping the server
    finally:
        os.close(lock)


def _lock_path(data_dir: Path, name: str) -> Path:
    return data_dir.with_name(f"{data_dir.name}.{name}.lock")


def log_path(data_dir: Path) -> Path:
    """Return the path of the server's log."""
    return data_dir.parent / "log" / "postgres.log"


def _use(data_dir: Path) -> EmbeddedServer:
    try:
        users = open_lock(_lock_path(data_dir, "users"))
    except OSError as error:
        raise _unusable(data_dir, error) from error
    try:
        share(users)  # waits for a keeper that is stopping the server
        return _found_or_started(data_dir, users)
    except (OSError, DatabaseUnavailableError):
        os.close(users)
        raise


def _found_or_started(data_dir: Path, users: int) -> EmbeddedServer:
    """Return the server, started if needed; the caller is a user. Raises DatabaseUnavailableError."""
    try:
        account = install.server_account(data_dir)
        with exclusive(_lock_path(data_dir, "start")):
            return _find_or_start(data_dir, users, account)
    except (OSError, subprocess.SubprocessError, DatabaseUnavailableError) as error:
        raise _unusable(data_dir, error) from error


def _unusable(data_dir: Path, error: Exception) -> DatabaseUnavailableError:
    return DatabaseUnavailableError(f"The embedded PostgreSQL in {data_dir} is not available. {error}")


def _find_or_start(data_dir: Path, users: int, account: pwd.struct_passwd) -> EmbeddedServer:
    """Return the running server, or start it when no process of an earlier one is left."""
    while (found := _accepting(data_dir)) is None:
        server = open_lock(_lock_path(data_dir, "server"))
        try:
            is_free = try_exclusive(server)
            if is_free:
                _launch(data_dir, server, account)
        finally:
            os.close(server)
        if is_free:
            _wait_until_ready(data_dir)
        elif ended := end_orphans(data_dir, account.pw_uid):
            logger.warning("database.orphans_ended count=%d", ended)
        time.sleep(_POLL_SECONDS)
    return EmbeddedServer(data_dir, found.socket_dir, users)


def _accepting(data_dir: Path) -> Postmaster | None:
    found = read_postmaster(data_dir)
    return found if found and found.accepts() else None


def _launch(data_dir: Path, server: int, account: pwd.struct_passwd) -> None:
    """Start the server, which inherits the lock."""
    install.allow_programs(account)
    to_this_major(data_dir, account)
    install.create_data_dir(data_dir, account)
    drop_reused_pid(data_dir)
    socket_dir = _socket_dir(data_dir, account)
    options = {**install.server_options(), "cluster_name": cluster_name(data_dir)}
    given = [f"-c{name}={value}" for name, value in options.items()]
    data = install.name_for_server(data_dir, account)
    sockets = data if socket_dir == str(data_dir) else socket_dir
    postgres = [str(install.program("postgres")), f"-D{data}", f"-k{sockets}", f"-p{PORT}", *given]
    # The server must end with its keeper; SIGINT requests a fast shutdown.
    command = [*end_with_parent(signal.SIGINT), *postgres]
    _launch_keeper(data_dir, server, [socket_dir, str(account.pw_uid), str(account.pw_gid), *command])


def _launch_keeper(data_dir: Path, server: int, arguments: list[str]) -> None:
    """Start the keeper in a new session, so that Ctrl-C in a terminal does not reach it."""
    script = Path(__file__).with_name("keeper.py")
    with open_log(log_path(data_dir)) as output:
        subprocess.run(  # noqa: S603 -- our own program
            [sys.executable, "-I", "-S", script, _lock_path(data_dir, "users"), str(server), data_dir, *arguments],
            check=True,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
            pass_fds=[server],
            env=install.clean_environment(),
            cwd="/",
        )


def _wait_until_ready(data_dir: Path) -> None:
    """Wait until the server accepts connections, minutes after a crash; raise DatabaseUnavailableError if it ended."""
    server = open_lock(_lock_path(data_dir, "server"))
    try:
        while _accepting(data_dir) is None:
            if try_exclusive(server):
                log = log_path(data_dir)
                raise DatabaseUnavailableError(
                    "\n".join([f"It did not start. The end of its log {log}:", *last_lines(log)])
                )
            time.sleep(_POLL_SECONDS)
    finally:
        os.close(server)


def _stop(data_dir: Path) -> None:
    if postmaster := read_postmaster(data_dir):
        postmaster.stop()
    with exclusive(_lock_path(data_dir, "server")):
        return


def _socket_dir(data_dir: Path, account: pwd.struct_passwd) -> str:
    """Return the folder of the socket: the data directory, or a temporary one if that path is not usable.

    The path of a socket must be short, and PostgreSQL parses commas and quotes in it as a list. The folder of a killed
    server is reused.
    """
    path = str(data_dir / f".s.PGSQL.{PORT}")
    if len(os.fsencode(path)) <= _SOCKET_PATH_BYTES and not set(path) & {",", '"'}:
        return str(data_dir)
    if (left := read_postmaster(data_dir)) and Path(left.socket_dir).is_dir():
        return left.socket_dir
    folder = tempfile.mkdtemp(prefix="corecube-")
    os.chown(folder, account.pw_uid, -1)
    return folder
