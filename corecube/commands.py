"""Shared by management commands: checks of the database, and display of steps."""

import io
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from django.core.management.base import BaseCommand, CommandError, OutputWrapper
from django.db import DatabaseError, InterfaceError, OperationalError
from psycopg.errors import UndefinedColumn, UndefinedTable
from tqdm import tqdm

from corecube.checks import require_server
from corecube.errors import CoreCubeError, first_line
from corecube.health import MIGRATE, require_database
from corecube.models import Connection

_WIDTH: Final = 24
_MAX_NOTE_CHARACTERS: Final = 50
_CLEAR_LINE: Final = "\r\x1b[2K"


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


class Steps:
    """Prints each step with its duration; a terminal also shows the running step."""

    def __init__(self, out: OutputWrapper) -> None:
        self._out = out
        self._is_live = out.isatty()

    @contextmanager
    def step(self, title: str) -> Iterator["StepNotes"]:
        """Run a block as one step; the notes show progress next to the title."""
        notes = StepNotes(self, title)
        notes.write("…")
        started = time.perf_counter()
        try:
            yield notes
        except BaseException:
            self._end(f"✗ {title}")
            raise
        self._end(f"✓ {title:<{_WIDTH}}{time.perf_counter() - started:6.1f} s")

    def show(self, line: str) -> None:
        """Show a temporary line, on a terminal only."""
        if self._is_live:
            self._out.write(f"{_CLEAR_LINE}{line}", ending="")
            self._out.flush()

    def _end(self, line: str) -> None:
        self._out.write(f"{_CLEAR_LINE if self._is_live else ''}  {line}")
        self._out.flush()


class StepNotes(io.TextIOBase):
    """A stream for the progress of a running step; its last line is shown."""

    def __init__(self, steps: Steps, title: str) -> None:
        self._steps = steps
        self._title = title

    def write(self, text: str) -> int:
        """Show the last line of the text, truncated."""
        if words := text.rpartition("\r")[-1].split():
            self._steps.show(f"  · {self._title:<{_WIDTH}}{' '.join(words)[:_MAX_NOTE_CHARACTERS]}")
        return len(text)
