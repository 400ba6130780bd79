"""`manage.py start`: prepares and runs CoreCube. `make run` calls it."""

import errno
import os
import signal
import socket
import sys
from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.db import OperationalError, connections

from corecube.checks import require_server
from corecube.commands import Steps, database_problem
from corecube.database import close_pools
from corecube.embedded.base import watched_database
from corecube.embedded.server import release
from corecube.errors import ConfigError, CoreCubeError, UnavailableError
from corecube.logs import last_lines
from corecube.people import ensure_first_admin
from corecube.process import make_all_private, make_private, open_lock, try_exclusive
from corecube.supervise import Program, StopRequest, keep_running, running, wait_until

_FIRST_PORT: Final = 8000
_PORTS_TRIED: Final = 10
#: Wildcard addresses, with the address for a local browser.
_LOCAL_ADDRESSES: Final = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 -- replaced, not bound
_WORKER_TASKS: Final = 2


class Command(BaseCommand):
    """Prepare the installation, then run the web server and the worker until Ctrl-C."""

    help = "Prepare the database, the model and the sample sources, then run the web server and the worker."
    # They run as the first step, which reports problems in a sentence.
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--no-samples", action="store_true", help="add no sample sources to a new installation")
        parser.add_argument("--prepare-only", action="store_true", help="prepare without starting")

    def handle(self, *_: Any, **options: Any) -> None:
        try:
            with _only_start(), _released_database():
                self._make_data_private()
                self._prepare(samples=not options["no_samples"])
                if not options["prepare_only"]:
                    self._run(_free_port(settings.CORECUBE_HOST, settings.CORECUBE_PORT))
        except CoreCubeError as error:
            raise CommandError(str(error)) from error
        except OperationalError as error:
            raise CommandError(database_problem(error)) from error
        except KeyboardInterrupt:
            raise CommandError("Stopped before everything was ready. The next start continues from here.") from None

    def _make_data_private(self) -> None:
        """Make the data of an earlier release private, and report what could not be changed."""
        folder: Path = settings.CORECUBE_VAR_DIR
        unchanged = [*([] if make_private(folder) else [folder]), *make_all_private(folder)]
        if unchanged:
            self.stderr.write(
                f"Other accounts can read {len(unchanged)} files and folders in {folder}, such as {unchanged[0]}."
                " This account may not change their permissions. Change their owner (chown)."
            )

    def _prepare(self, *, samples: bool) -> None:
        steps = Steps(self.stdout)
        accounts = ""
        with steps.step("Database"):
            require_server()
            connections["default"].ensure_connection()
        with steps.step("Tables") as notes:
            call_command("migrate", interactive=False, verbosity=0, skip_checks=True, stdout=notes)
        with steps.step("Model") as notes:
            call_command("models", "fetch", stdout=notes, stderr=notes)
        if samples:
            with steps.step("Sample sources") as notes:
                accounts = call_command("samples", "--once", stdout=notes, stderr=notes) or ""
        if admin := ensure_first_admin():
            accounts = f"{admin.line()}  Administrator\n{accounts}"
        if accounts:
            self.stdout.write(f"\nUsers and passwords, shown only once:\n\n{accounts}\n")

    def _run(self, port: int) -> None:
        """Run the web server and the worker until a signal; raise UnavailableError if one does not keep running."""
        host = _LOCAL_ADDRESSES.get(settings.CORECUBE_HOST, settings.CORECUBE_HOST)
        folder = settings.BASE_DIR
        with StopRequest() as request, watched_database(), running(_programs(port), request, folder=folder) as team:
            with Steps(self.stdout).step("Web server and worker"):
                _require_running(wait_until(lambda: _answers(host, port), team, request))
            if not request.is_set:
                address = f"http://{f'[{host}]' if ':' in host else host}:{port}"
                logs = settings.CORECUBE_VAR_DIR / "log"
                self.stdout.write(f"\nCoreCube is ready: {address}\nPress Ctrl-C to stop. Logs: {logs}.")
                self.stdout.flush()
            _require_running(keep_running(team, request, folder=folder, report=self._report_restart))
            self.stdout.write("\nStopping … (press Ctrl-C again to stop at once)")
            self.stdout.flush()

    def _report_restart(self, program: Program) -> None:
        self.stdout.write(f"\nThe {program.name} ended and is being restarted. Its log is {program.log}.")
        self.stdout.flush()


@contextmanager
def _only_start() -> Iterator[None]:
    """Prevent a second start on the same data."""
    lock = open_lock(settings.CORECUBE_VAR_DIR / "start.lock")
    try:
        if not try_exclusive(lock):
            folder = settings.CORECUBE_VAR_DIR
            raise UnavailableError(f"CoreCube is already running on {folder}. Set CORECUBE_VAR_DIR to another folder.")
        yield
    finally:
        os.close(lock)


@contextmanager
def _released_database() -> Iterator[None]:
    """Close the database connections at the end, and wait until an unused embedded server has stopped."""
    try:
        yield
    finally:
        close_pools()
        release(settings.CORECUBE_POSTGRES_DIR)


def _require_running(ended: Program | None) -> None:
    """Raise UnavailableError with the end of the log for a program that has ended."""
    if ended:
        lines = "\n".join(last_lines(ended.log))
        message = (
            f"The {ended.name} ended unexpectedly, so CoreCube was stopped. The end of its log {ended.log}:\n{lines}"
        )
        raise UnavailableError(message)


def _free_port(host: str, requested: int) -> int:
    """Return the requested port, or for 0 the first free one from 8000; raise ConfigError without one."""
    ports = [requested] if requested else range(_FIRST_PORT, _FIRST_PORT + _PORTS_TRIED)
    for port in ports:
        try:
            socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET).close()
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                message = f"The web server cannot listen on {host}, port {port}: {error.strerror}."
                raise ConfigError(message) from error
        else:
            return port
    message = f"Another program uses port {ports[0]} of {host}. Set CORECUBE_PORT to another port."
    raise ConfigError(message)


def _answers(host: str, port: int) -> bool:
    """Return whether the web server accepts connections, which it does after loading the application."""
    try:
        socket.create_connection((host, port), timeout=1).close()
    except OSError:
        return False
    return True


def _programs(port: int) -> tuple[Program, Program]:
    """Return the web server and the worker. The web server logs no URLs, because they contain queries."""
    logs = settings.CORECUBE_VAR_DIR / "log"
    web = ("uvicorn", "corecube.asgi:application", f"--host={settings.CORECUBE_HOST}", f"--port={port}")
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
