"""Reading and writing the rows of all tables, in PostgreSQL's binary COPY format.

The tables come from the models and the schema from the migrations, so no program of PostgreSQL is needed, and a backup
fits another major version and another server. Indexes are built by the migrations, and by what needs more of them.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from time import monotonic, sleep
from typing import Any, Final

import psycopg
from django.apps import apps
from django.db import DatabaseError, connection, models, transaction
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder
from psycopg import sql

from corecube.backup.manifest import SequenceEntry, TableEntry
from corecube.backup.parts import Parts
from corecube.database import close_pools
from corecube.errors import BackupError, first_line
from corecube.health import RESTORING

_ONE_MOMENT: Final = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY"
_NO_LIMITS: Final = "SET LOCAL statement_timeout = 0; SET LOCAL idle_in_transaction_session_timeout = 0"
_READ: Final = sql.SQL("COPY {} ({}) TO STDOUT (FORMAT binary)")
_WRITE: Final = sql.SQL("COPY {} ({}) FROM STDIN (FORMAT binary)")
_EMPTY: Final = sql.SQL("TRUNCATE {} CASCADE")
_DROP: Final = sql.SQL("DROP TABLE {} CASCADE")
_SEQUENCE: Final = "SELECT pg_get_serial_sequence(%s, %s)"
_STATE: Final = sql.SQL("SELECT last_value, is_called FROM {}")
#: Foreign keys, in whose referring tables no index can be built before.
_CHECK: Final = "SET CONSTRAINTS ALL IMMEDIATE"
_SET: Final = "SELECT setval(pg_get_serial_sequence(%s, %s), %s, %s)"
#: Indexes that enforce nothing: they are built faster once the rows are there.
_INDEXES: Final = """
SELECT indexrelid::regclass::text, pg_get_indexdef(indexrelid)
FROM pg_index
WHERE indrelid = ANY(%s::regclass[]) AND NOT indisunique AND NOT indisexclusion
"""
_OTHERS: Final = """
SELECT count(*) FROM pg_stat_activity
WHERE datname = current_database() AND usename = current_user AND pid <> pg_backend_pid()
  AND backend_type = 'client backend'
"""
#: How long sessions that were closed may take to end.
_ENDING_SECONDS: Final = 3.0
_PAUSE_SECONDS: Final = 0.05


@dataclass(frozen=True, slots=True)
class Table:
    """A table of a model."""

    name: str
    columns: tuple[str, ...]
    serial: str  #: The column that a sequence numbers; empty for none.


def all_tables(left_out: Collection[str]) -> list[Table]:
    """Return the tables of all models except those with these labels, such as "sessions.Session"."""
    found = {
        model._meta.db_table: _table(model)  # noqa: SLF001 -- Django's documented way to the fields
        for model in apps.get_models(include_auto_created=True)
        if model._meta.managed and not model._meta.proxy and model._meta.label not in left_out  # noqa: SLF001
    }
    return [found[name] for name in sorted(found)]


def _table(model: type[models.Model]) -> Table:
    meta = model._meta  # noqa: SLF001 -- Django's documented way to the fields
    fields = [it for it in meta.local_concrete_fields if not it.generated]
    serial = next((it.column for it in fields if isinstance(it, models.AutoField)), "")
    return Table(meta.db_table, tuple(it.column for it in fields), serial)


@contextmanager
def one_moment() -> Iterator[None]:
    """Read the database as it is at the first statement of the block. Without a lock: writers go on."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(_ONE_MOMENT)
        cursor.execute(_NO_LIMITS)
        yield


def read_table(table: Table, parts: Parts) -> TableEntry:
    """Store the rows of a table."""
    with connection.cursor() as cursor:
        statement = _READ.format(sql.Identifier(table.name), _columns(table.columns))
        with connection.wrap_database_errors, cursor.copy(statement) as blocks:
            content = parts.write(blocks)
        return TableEntry(table.name, table.columns, cursor.rowcount, content)


def read_sequences(tables: Iterable[Table]) -> Iterator[SequenceEntry]:
    """Yield the states of the sequences, which may be ahead of the rows of a moment."""
    with connection.cursor() as cursor:
        for table in tables:
            if not table.serial:
                continue
            cursor.execute(_SEQUENCE, [_quoted(table.name), table.serial])
            ((name,),) = cursor.fetchall()
            cursor.execute(_STATE.format(sql.SQL(name)))
            yield SequenceEntry(table.name, table.serial, *cursor.fetchone())


def read_migrations() -> dict[str, tuple[str, ...]]:
    """Return the applied migrations of each app."""
    applied: dict[str, list[str]] = {}
    for app, name in sorted(MigrationRecorder(connection).applied_migrations()):
        applied.setdefault(app, []).append(name)
    return {app: tuple(names) for app, names in applied.items()}


def require_known(migrations: Mapping[str, Sequence[str]], version: str) -> None:
    """Raise BackupError for migrations that this version of CoreCube does not have."""
    known = MigrationLoader(None).disk_migrations
    if any((app, name) not in known for app, names in migrations.items() for name in names):
        raise BackupError(f"A later version of CoreCube ({version}) made the backup. Upgrade CoreCube first.")


def other_sessions() -> int:
    """Return how many other sessions of this role use the database, when those that are ending have ended."""
    close_pools()
    with psycopg.connect(**{**connection.get_connection_params(), "autocommit": True}) as session:
        until = monotonic() + _ENDING_SECONDS
        while others := _others(session):
            if monotonic() > until:
                return others
            sleep(_PAUSE_SECONDS)
    return 0


def _others(session: "psycopg.Connection[Any]") -> int:
    ((others,),) = session.execute(_OTHERS).fetchall()
    return int(others)


def is_restoring() -> bool:
    """Return whether an unfinished restore has left the database."""
    return RESTORING in MigrationRecorder(connection).applied_migrations()


def begin_restoring(migrations: Mapping[str, Sequence[str]]) -> None:
    """Mark the database as incomplete for all processes, and give it the empty tables of these migrations."""
    recorder = MigrationRecorder(connection)
    recorder.ensure_schema()
    with transaction.atomic(), connection.cursor() as cursor:
        recorder.migration_qs.all().delete()
        recorder.record_applied(*RESTORING)
        if tables := _existing(cursor):
            cursor.execute(_DROP.format(_columns(tables)))
    executor = MigrationExecutor(connection)
    nodes = executor.loader.graph.node_map
    recorded = {(app, name) for app, names in migrations.items() for name in names} & nodes.keys()
    # Only the last ones of each app: reaching another one could take back what came after it.
    last = [it for it in recorded if not any(c.key in recorded and c.key[0] == it[0] for c in nodes[it].children)]
    executor.migrate(sorted(last))


def end_restoring() -> None:
    """Unmark the database."""
    MigrationRecorder(connection).record_unapplied(*RESTORING)


def write_tables(tables: Sequence[TableEntry], sequences: Iterable[SequenceEntry], parts: Parts) -> None:
    """Replace the rows of the tables, all or none; raise BackupError for rows that do not fit or are incomplete."""
    try:
        _write_tables(tables, sequences, parts)
    except DatabaseError as error:
        raise BackupError(f"The rows do not fit: {first_line(error)}") from error


def _write_tables(tables: Sequence[TableEntry], sequences: Iterable[SequenceEntry], parts: Parts) -> None:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(_NO_LIMITS)
        names = [it.name for it in tables]
        cursor.execute(_EMPTY.format(_columns(names)))
        cursor.execute(_INDEXES, [list(map(_quoted, names))])
        indexes = cursor.fetchall()
        for index, _ in indexes:
            cursor.execute(f"DROP INDEX {index}")
        for table in tables:
            _write_table(cursor, table, parts)
        cursor.execute(_CHECK)
        for _, definition in indexes:
            cursor.execute(definition)
        for it in sequences:
            cursor.execute(_SET, [_quoted(it.table), it.column, it.last_value, it.is_called])


def _write_table(cursor: Any, table: TableEntry, parts: Parts) -> None:  # noqa: ANN401 -- Django's cursor wrapper has no public type
    statement = _WRITE.format(sql.Identifier(table.name), _columns(table.columns))
    try:
        with cursor.copy(statement) as copy:
            for block in parts.read(table.content):
                copy.write(block)
    except psycopg.Error as error:
        raise BackupError(f"The rows of {table.name} do not fit: {first_line(error)}") from error
    if cursor.rowcount != table.rows:
        raise BackupError(f"{table.name} has {cursor.rowcount} rows instead of {table.rows}.")


def _existing(cursor: Any) -> list[str]:  # noqa: ANN401 -- as above
    """Return the tables of all installed apps, of this version and others, except the one of migrations."""
    modelled = {it.name for it in all_tables(())}
    prefixes = tuple(f"{it.label}_" for it in apps.get_app_configs())
    names = connection.introspection.table_names(cursor)
    of_migrations = MigrationRecorder.Migration._meta.db_table  # noqa: SLF001 -- Django's documented way to the table
    return [it for it in names if it != of_migrations and (it in modelled or it.startswith(prefixes))]


def _columns(names: Iterable[str]) -> sql.Composed:
    return sql.SQL(", ").join(map(sql.Identifier, names))


def _quoted(name: str) -> str:
    return str(connection.ops.quote_name(name))
