"""What management commands have in common: they say what is wrong with the database in a sentence."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError, InterfaceError, OperationalError
from psycopg.errors import UndefinedColumn, UndefinedTable

from corecube.checks import require_server
from corecube.errors import CoreCubeError
from corecube.health import MIGRATE, require_database


class DatabaseCommand(BaseCommand):
    """A command that needs the database, with every table as this version has it."""

    requires_migrations_checks = True

    def check_migrations(self) -> None:
        """Raise CommandError when the database cannot be used or migrations are pending."""
        try:
            require_server()
            require_database()
        except CoreCubeError as error:
            cause = error.__cause__
            trouble = database_trouble(cause) if isinstance(cause, Exception) else ""
            raise CommandError(trouble or str(error)) from error

    def execute(self, *args: Any, **options: Any) -> str | None:  # noqa: ANN401 -- Django's signature
        """Run the command; raise CommandError also when the database goes away meanwhile."""
        try:
            return super().execute(*args, **options)
        except (DatabaseError, InterfaceError) as error:
            if trouble := database_trouble(error):
                raise CommandError(trouble) from error
            raise


def database_trouble(error: Exception) -> str:
    """Return what is wrong with the database and what to do; empty for an error that is somebody else's."""
    if isinstance(error.__cause__, UndefinedTable | UndefinedColumn):
        return MIGRATE
    if isinstance(error, OperationalError | InterfaceError):
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        return f"The database cannot be used: {reason}"
    return ""
