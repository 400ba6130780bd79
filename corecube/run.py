"""Runs the web server and the worker until a signal: what `manage.py start` becomes once everything is prepared.

A separate program, because it needs neither Django nor the application: 35 MB instead of 150.
Usage: `python -m corecube.run TASK`, with a `Task` in JSON.
"""

import json
import logging
import os
import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from threading import Event, Thread
from typing import Final, NoReturn

import psycopg

from corecube.embedded.server import embedded_server, release, restarted_server
from corecube.errors import CoreCubeError, DatabaseUnavailableError, UnavailableError
from corecube.logs import last_lines
from corecube.steps import Steps
from corecube.supervise import SIGNALS, Program, StopRequest, keep_running, running, wait_until

logger = logging.getLogger(__name__)

_Session = psycopg.Connection[tuple[object, ...]]
#: Wildcard addresses, with the address for a local browser.
_LOCAL_ADDRESSES: Final = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 -- replaced, not bound
_WORKER_TASKS: Final = 2
_WATCH_SECONDS: Final = 0.5
_JOIN_SECONDS: Final = 5.0  #: Maximum wait for a running check of the database at the end.


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """What to run, and what keeps others from it."""

    folder: str  #: Working directory of the programs.
    logs: str
    host: str  #: Where the web server listens.
    port: int
    data_dir: str  #: Data of the embedded database; empty with another server.
    start_lock: int  #: Descriptors of the locks of this process, which it has until it ends.
    users_lock: int | None  #: None with another server.


def become(task: Task) -> NoReturn:
    """Replace this process by one that does the task. Signals of the moment in between wait."""
    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    for lock in (task.start_lock, task.users_lock):
        if lock is not None:
            os.set_inheritable(lock, True)  # noqa: FBT003 -- its signature
    os.chdir(task.folder)
    os.execv(sys.executable, [sys.executable, "-m", "corecube.run", json.dumps(asdict(task))])  # noqa: S606 -- ours


def _main(task: Task) -> int:
    logging.basicConfig(format="{asctime} {levelname:<7} {name} {message}", style="{")
    try:
        with StopRequest() as request:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
            with _database(task):
                _run(task, request)
    except CoreCubeError as error:
        sys.stderr.write(f"CommandError: {error}\n")
        return 1
    return 0


def _run(task: Task, request: StopRequest) -> None:
    """Run the programs until a signal; raise UnavailableError if one does not keep running."""
    host = _LOCAL_ADDRESSES.get(task.host, task.host)
    folder = Path(task.folder)
    with running(_programs(task), request, folder=folder) as team:
        with Steps(sys.stdout).step("Web server and worker"):
            _require_running(wait_until(lambda: _answers(host, task.port), team, request))
        if not request.is_set:
            address = f"http://{f'[{host}]' if ':' in host else host}:{task.port}"
            _tell(f"CoreCube is ready: {address}\nPress Ctrl-C to stop. Logs: {task.logs}.")
        _require_running(keep_running(team, request, folder=folder, report=_report_restart))
        _tell("Stopping … (press Ctrl-C again to stop at once)")


def _tell(text: str) -> None:
    sys.stdout.write(f"\n{text}\n")
    sys.stdout.flush()


def _report_restart(program: Program) -> None:
    _tell(f"The {program.name} ended and is being restarted. Its log is {program.log}.")


def _require_running(ended: Program | None) -> None:
    """Raise UnavailableError with the end of the log for a program that has ended."""
    if ended:
        lines = "\n".join(last_lines(ended.log))
        message = (
            f"The {ended.name} ended unexpectedly, so CoreCube was stopped. The end of its log {ended.log}:\n{lines}"
        )
        raise UnavailableError(message)


def _answers(host: str, port: int) -> bool:
    """Return whether the web server accepts connections, which it does after loading the application."""
    try:
        socket.create_connection((host, port), timeout=1).close()
    except OSError:
        return False
    return True


def _programs(task: Task) -> tuple[Program, Program]:
    """Return the web server and the worker. The web server logs no URLs, because they contain queries."""
    logs = Path(task.logs)
    web = ("uvicorn", "corecube.asgi:application", f"--host={task.host}", f"--port={task.port}")
    # The application handles trusted proxies, by CORECUBE_TRUSTED_PROXIES.
    web_options = (
        *("--no-access-log", "--no-server-header", "--no-proxy-headers", "--lifespan=on"),
        "--timeout-graceful-shutdown=5",
    )
    worker = ("celery", "--app=corecube", "worker", "--pool=prefork", f"--concurrency={_WORKER_TASKS}")
    worker_options = ("--loglevel=INFO", "--without-gossip", "--without-mingle", "--without-heartbeat")
    return (
        Program("web server", (sys.executable, "-m", *web, *web_options), logs / "web.log"),
        # SIGTERM would wait for running tasks; SIGQUIT returns them to the queue.
        Program("worker", (sys.executable, "-m", *worker, *worker_options), logs / "worker.log", signal.SIGQUIT),
    )


@contextmanager
def _database(task: Task) -> Iterator[None]:
    """Use and watch the embedded database during the block, and wait at the end until an unused one has stopped."""
    if task.users_lock is None:
        yield
        return
    data_dir, is_over = Path(task.data_dir), Event()
    watch = Thread(target=_watch, args=(data_dir, is_over), name="database-watch", daemon=True)
    embedded_server(data_dir)
    os.close(task.users_lock)  # replaced by this program's lock
    watch.start()
    try:
        yield
    finally:
        is_over.set()
        watch.join(_JOIN_SECONDS)
        release(data_dir)


def _watch(data_dir: Path, is_over: Event) -> None:
    """Ask the database twice a second and restart a stopped one, so that no request has to wait for that."""
    session, was_available = None, True
    while not is_over.wait(_WATCH_SECONDS):
        if session and _is_alive(session):
            continue
        try:
            session = _session(data_dir)
        except (psycopg.Error, DatabaseUnavailableError) as error:
            if was_available:
                logger.warning("database.unavailable error=%s", error)
            session, was_available = None, False
        else:
            if not was_available:
                logger.warning("database.available_again")
            was_available = True
    if session:
        session.close()


def _is_alive(session: _Session) -> bool:
    try:
        session.execute("SELECT 1")
    except psycopg.Error:
        session.close()
        return False
    return True


def _session(data_dir: Path) -> _Session:
    """Return a session with the server, which is restarted if it has stopped."""
    try:
        return embedded_server(data_dir).connect("postgres")
    except psycopg.OperationalError:
        return restarted_server(data_dir).connect("postgres")


if __name__ == "__main__":
    sys.exit(_main(Task(**json.loads(sys.argv[1]))))
