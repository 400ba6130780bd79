"""Checks of the database, its figures, and its check at the start of a web server or worker."""

import logging
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from threading import Thread
from typing import Final

from django.db import connections
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder
from django.dispatch import Signal

from corecube.checks import require_server
from corecube.database import close_pools
from corecube.errors import ConfigError, CoreCubeError, DatabaseUnavailableError, RestoringError, UnavailableError

MIGRATE: Final = (
    "Migrations are pending: run `manage.py migrate`. `make run` and `manage.py start` do this automatically."
)
#: Recorded like a migration while a backup is being restored, so that every process sees it and waits.
RESTORING: Final = ("corecube", "restoring")
logger = logging.getLogger(__name__)

serving: Final = Signal()  #: Sent once by each web process, when it has loaded its code. Receivers must not block.
stopping: Final = Signal()  #: Sent once by each web process that ends, after its last request.
_WAIT_SECONDS: Final = 20.0  #: Longer than the timeout of any step.
_FACTS_SQL: Final = """
SELECT current_setting('server_version'),
       (SELECT extversion FROM pg_extension WHERE extname = 'vector'),
       pg_database_size(current_database()),
       (SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()),
       current_setting('max_connections')::int,
       to_regclass('pg_dist_node') IS NOT NULL
"""
#: Of a Citus cluster: the bytes of this database on all machines that answer.
_ALL_BYTES_SQL: Final = """
SELECT sum(result::bigint) FILTER (WHERE success)::bigint
FROM run_command_on_all_nodes('SELECT pg_database_size(current_database())')
"""


def require_database() -> None:
    """Raise DatabaseUnavailableError without the database, RestoringError, UnavailableError for pending migrations."""
    try:
        applied = MigrationRecorder(connections["default"]).applied_migrations()
    except Exception as error:  # from the driver, the pool or the embedded server
        raise DatabaseUnavailableError from error
    if RESTORING in applied:
        raise RestoringError
    if not _latest_migrations() <= applied.keys():
        raise UnavailableError(MIGRATE)


def require_restored() -> None:
    """Raise RestoringError while the database is incomplete because of a restore."""
    if RESTORING in MigrationRecorder(connections["default"]).applied_migrations():
        raise RestoringError


@dataclass(frozen=True, slots=True)
class DatabaseFacts:
    """Figures of the server and of this database."""

    server: str
    pgvector: str
    bytes: int
    connections: int  #: Connections to this database from all processes, and the limit of the server.
    max_connections: int


def database_facts() -> DatabaseFacts:
    """Query the server. Raises the errors of the driver."""
    with connections["default"].cursor() as cursor:
        cursor.execute(_FACTS_SQL)
        server, pgvector, size, *rest, is_cluster = cursor.fetchone()
        if is_cluster:
            cursor.execute(_ALL_BYTES_SQL)
            (size,) = cursor.fetchone()
    return DatabaseFacts(server.split()[0], pgvector or "", size, *rest)


def pending_migrations() -> int:
    """Return how many migrations of this version the database lacks. Raises the errors of the driver."""
    executor = MigrationExecutor(connections["default"])
    return len(executor.migration_plan(executor.loader.graph.leaf_nodes()))


def clock_lead_seconds() -> float:
    """Return by how many seconds this machine's clock is ahead of the database's. Raises the errors of the driver."""
    with connections["default"].cursor() as cursor:
        before = time.time()
        cursor.execute("SELECT extract(epoch FROM clock_timestamp())::float8")
        (there,) = cursor.fetchone()
    return (before + time.time()) / 2 - float(there)


def pool_figures() -> Mapping[str, int]:
    """Return the statistics of this process's connection pool; empty without a pool."""
    pool = getattr(connections["default"], "pool", None)
    return pool.get_stats() if pool else {}


@cache
def _latest_migrations() -> frozenset[tuple[str, str]]:
    return frozenset(MigrationLoader(None).graph.leaf_nodes())


def check_database() -> None:
    """Exit if the server in DATABASE_URL or SECRET_KEY cannot be used, or during a restore; log any other problem.

    A server that does not respond and pending migrations may be fixed while the process runs.
    """
    problems: list[str] = []
    # In a thread: a web server loads the application in its event loop, where Django refuses queries.
    thread = Thread(target=_check, args=(problems,), daemon=True)
    thread.start()
    thread.join(_WAIT_SECONDS)
    if problems:
        sys.exit(problems[0])


def _check(problems: list[str]) -> None:
    # A web server imports this module before there are models.
    from corecube.same_key import note_key, require_same_key  # noqa: PLC0415

    try:
        require_server()
        require_database()
        require_same_key()
        note_key()
    except (ConfigError, RestoringError) as error:
        problems.append(str(error))
    except CoreCubeError as error:
        # The traceback has no useful information.
        logger.error("database.not_ready reason=%s", error.__cause__ or error)  # noqa: TRY400
    finally:
        # A worker forks its processes next, and they cannot share a pool.
        close_pools()
