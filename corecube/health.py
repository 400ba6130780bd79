"""Checks of the database, and its figures."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Final

from django.db import connections
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

from corecube.errors import DatabaseUnavailableError, UnavailableError

MIGRATE: Final = (
    "Migrations are pending: run `manage.py migrate`. `make run` and `manage.py start` do this automatically."
)


def require_database() -> None:
    """Check that the database is available with all migrations.

    Raises DatabaseUnavailableError, or UnavailableError for pending migrations.
    """
    try:
        applied = MigrationRecorder(connections["default"]).applied_migrations()
    except Exception as error:  # from the driver, the pool or the embedded server
        raise DatabaseUnavailableError from error
    if not _latest_migrations() <= applied.keys():
        raise UnavailableError(MIGRATE)


_FACTS_SQL: Final = """
SELECT current_setting('server_version'),
       (SELECT extversion FROM pg_extension WHERE extname = 'vector'),
       pg_database_size(current_database()),
       (SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()),
       current_setting('max_connections')::int
"""


@dataclass(frozen=True, slots=True)
class DatabaseFacts:
    """Figures of the server and of this database."""

    server: str
    pgvector: str
    bytes: int
    #: Connections to this database from all processes, and the limit of the server.
    connections: int
    max_connections: int


def database_facts() -> DatabaseFacts:
    """Query the server. Raises the errors of the driver."""
    with connections["default"].cursor() as cursor:
        cursor.execute(_FACTS_SQL)
        server, pgvector, *rest = cursor.fetchone()
    return DatabaseFacts(server.split()[0], pgvector or "", *rest)


def pool_figures() -> Mapping[str, int]:
    """Return the statistics of this process's connection pool; empty without a pool."""
    pool = getattr(connections["default"], "pool", None)
    return pool.get_stats() if pool else {}


@cache
def _latest_migrations() -> frozenset[tuple[str, str]]:
    return frozenset(MigrationLoader(None).graph.leaf_nodes())
