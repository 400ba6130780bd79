"""Whether the database can be used."""

from functools import cache

from django.db import connections
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

from corecube.errors import DatabaseUnavailableError, UnavailableError


def require_database() -> None:
    """Return when the database answers and has every table as this version needs it.

    Raises DatabaseUnavailableError when it does not answer, UnavailableError when migrations are pending.
    """
    try:
        applied = MigrationRecorder(connections["default"]).applied_migrations()
    except Exception as error:  # whatever the driver, the pool and the embedded server raise
        raise DatabaseUnavailableError from error
    if not _latest_migrations() <= applied.keys():
        raise UnavailableError("Migrations are pending: run `manage.py migrate`.")


@cache
def _latest_migrations() -> frozenset[tuple[str, str]]:
    """Return the app and name of each app's last migration."""
    return frozenset(MigrationLoader(None).graph.leaf_nodes())
