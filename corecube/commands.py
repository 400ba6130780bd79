"""Shared by management commands: checks of the database, and errors in a sentence."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError, InterfaceError, OperationalError
from psycopg.errors import UndefinedColumn, UndefinedTable
from tqdm import tqdm

from corecube.checks import require_server
from corecube.errors import CoreCubeError, first_line
from corecube.health import MIGRATE, require_database
from corecube.models import Connection


class CoreCubeCommand(BaseCommand):
    """A command that reports a CoreCubeError as its message, and whose help is its docstring unless it has another."""

    #: Only CoreCube's own checks: Django's load every page and API, which takes longer than most commands.
    requires_system_checks: tuple[str, ...] = ("corecube",)

    def __init_subclass__(cls) -> None:
        if "help" not in cls.__dict__:
            cls.help = cls.__doc__ or ""

    def execute(self, *args: Any, **options: Any) -> str | None:  # noqa: ANN401 -- Django's signature
        """Run the command; raise CommandError for a CoreCubeError."""
        try:
            return super().execute(*args, **options)
        except CoreCubeError as error:
            raise CommandError(str(error)) from error

    def bar(self, unit: str, *, leave: bool = False) -> Any:  # noqa: ANN401 -- tqdm has no types
        """Return a progress bar on standard error, hidden if that is not a terminal."""
        return tqdm(unit=f" {unit}", disable=None, file=self.stderr, leave=leave)

    @contextmanager
    def steps(self) -> Iterator[Callable[[str], None]]:
        """Yield a function that shows a step on standard error, hidden if that is not a terminal."""
        with self.bar("steps") as bar:

            def report(step: str) -> None:
                bar.set_postfix_str(step, refresh=False)
                bar.update()

            yield report


class DatabaseCommand(CoreCubeCommand):
    """A command that needs the database, with all migrations of this version."""

    requires_migrations_checks = True

    def check_migrations(self) -> None:
        """Raise CommandError if the database is unavailable or migrations are pending."""
        try:
            require_server()
            require_database()
        except CoreCubeError as error:
            cause = error.__cause__
            problem = database_problem(cause) if isinstance(cause, Exception) else ""
            raise CommandError(problem or str(error)) from error

    def execute(self, *args: Any, **options: Any) -> str | None:  # noqa: ANN401 -- Django's signature
        """Run the command; raise CommandError also if the database becomes unavailable."""
        try:
            return super().execute(*args, **options)
        except (DatabaseError, InterfaceError) as error:
            if problem := database_problem(error):
                raise CommandError(problem) from error
            raise


def database_problem(error: Exception) -> str:
    """Return the problem with the database and its solution; empty for any other error."""
    if isinstance(error.__cause__, UndefinedTable | UndefinedColumn):
        return MIGRATE
    if isinstance(error, OperationalError | InterfaceError):
        return f"The database is not available: {first_line(error)}"
    return ""


def connections_named(slug: str | None) -> list[Connection]:
    """Return the connection with a slug, or all connections by slug; raise CommandError for an unknown one."""
    connections = Connection.objects.order_by("slug")
    found = list(connections.filter(slug=slug) if slug else connections)
    if slug and not found:
        raise CommandError(f"There is no connection {slug!r}.")
    return found
