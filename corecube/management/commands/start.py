"""`manage.py start`: prepares and runs CoreCube. `make run` calls it."""

import errno
import socket
import sys
from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NoReturn

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.db import OperationalError, connections

from corecube.checks import require_server
from corecube.commands import database_problem
from corecube.database import close_pools
from corecube.embedded.server import release, users_lock
from corecube.errors import ConfigError, CoreCubeError
from corecube.health import require_restored
from corecube.only_start import only_start
from corecube.people import ensure_first_admin
from corecube.process import make_all_private, make_private
from corecube.run import Task, become
from corecube.same_key import require_same_key
from corecube.steps import Steps

_FIRST_PORT: Final = 8000
_PORTS_TRIED: Final = 10


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
            with only_start() as lock, _released_database():
                self._make_data_private()
                self._prepare(samples=not options["no_samples"])
                if not options["prepare_only"]:
                    self._run(lock)
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
        steps = Steps(sys.stdout)
        accounts = ""
        with steps.step("Database"):
            require_server()
            connections["default"].ensure_connection()
            require_restored()
        with steps.step("Tables") as notes:
            call_command("migrate", interactive=False, verbosity=0, skip_checks=True, stdout=notes)
            require_same_key()
        with steps.step("Model") as notes:
            call_command("models", "fetch", stdout=notes, stderr=notes)
        if samples:
            with steps.step("Sample sources") as notes:
                accounts = call_command("samples", "--once", stdout=notes, stderr=notes) or ""
        if admin := ensure_first_admin():
            accounts = f"{admin.line()}  Administrator\n{accounts}"
        if accounts:
            self.stdout.write(f"\nUsers and passwords, shown only once:\n\n{accounts}\n")

    def _run(self, start_lock: int) -> NoReturn:
        """Replace this process by the one that runs the web server and the worker."""
        port = _free_port(settings.CORECUBE_HOST, settings.CORECUBE_PORT)
        close_pools()
        self.stdout.flush()
        become(
            Task(
                folder=str(settings.BASE_DIR),
                logs=str(settings.CORECUBE_VAR_DIR / "log"),
                host=settings.CORECUBE_HOST,
                port=port,
                data_dir=str(settings.CORECUBE_POSTGRES_DIR),
                start_lock=start_lock,
                users_lock=users_lock(settings.CORECUBE_POSTGRES_DIR),
            )
        )


@contextmanager
def _released_database() -> Iterator[None]:
    """Close the database connections at the end, and wait until an unused embedded server has stopped."""
    try:
        yield
    finally:
        close_pools()
        release(settings.CORECUBE_POSTGRES_DIR)


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
