"""Whether the database can be used, and what it and the disk hold."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Final

from django.db import connections
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

from corecube.errors import DatabaseUnavailableError, UnavailableError

MIGRATE: Final = (
    "Migrations are pending: run `manage.py migrate`. `make run` and `manage.py start` do it by themselves."
)


def require_database() -> None:
    """Return when the database answers and has every table as this version needs it.

    Raises DatabaseUnavailableError when it does not answer, UnavailableError when migrations are pending.
    """
    try:
        applied = MigrationRecorder(connections["default"]).applied_migrations()
    except Exception as error:  # whatever the driver, the pool and the embedded server raise
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
    """What the server says of itself and of this database."""

    server: str
    pgvector: str
    bytes: int
    #: Connections to this database, of every process, and the most that the server takes in all.
    connections: int
    max_connections: int


def database_facts() -> DatabaseFacts:
    """Ask the server. Raises what the driver raises when it does not answer."""
    with connections["default"].cursor() as cursor:
        cursor.execute(_FACTS_SQL)
        server, pgvector, *rest = cursor.fetchone()
    return DatabaseFacts(server.split()[0], pgvector or "", *rest)


def pool_figures() -> Mapping[str, int]:
    """Return what this process's pool of connections says of itself; nothing where there is none."""
    pool = getattr(connections["default"], "pool", None)
    return pool.get_stats() if pool else {}


@cache
def _latest_migrations() -> frozenset[tuple[str, str]]:
    """Return the app and name of each app's last migration."""
    return frozenset(MigrationLoader(None).graph.leaf_nodes())
