"""What pending migrations do to the tables, before they are applied."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from django.db import connection
from django.db.migrations import Migration, operations
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.operations.base import Operation

_BYTES: Final = "SELECT coalesce(pg_total_relation_size(to_regclass(%s)), 0)"
#: Bytes that PostgreSQL rewrites or indexes in a second, on a slow disk.
_BYTES_A_SECOND: Final = 20_000_000


class Effect(StrEnum):
    """How an operation uses a table; all but INSTANT take longer the larger it is."""

    INSTANT = "changes only the definition"
    INDEX = "builds an index; writers wait"
    ROWS = "may read or rewrite every row; readers and writers may wait"
    STATEMENTS = "runs code or SQL whose time is unknown"


_EFFECTS: Final = {
    # PostgreSQL stores a default without rewriting rows.
    **dict.fromkeys((operations.AddField, operations.CreateModel, operations.DeleteModel), Effect.INSTANT),
    **dict.fromkeys((operations.RemoveField, operations.RenameField, operations.RenameModel), Effect.INSTANT),
    **dict.fromkeys((operations.AlterModelOptions, operations.RemoveIndex, operations.RenameIndex), Effect.INSTANT),
    **dict.fromkeys((operations.AlterModelManagers, operations.RemoveConstraint), Effect.INSTANT),
    operations.AddIndex: Effect.INDEX,
    **dict.fromkeys((operations.AddConstraint, operations.AlterField), Effect.ROWS),
}


@dataclass(frozen=True, slots=True)
class PendingChange:
    """An operation of a pending migration."""

    migration: str
    what: str  #: In Django's words.
    effect: Effect
    bytes: int  #: Of its table with all indexes; 0 for an instant change, and where the table is not known.

    @property
    def seconds(self) -> float | None:
        """About how long it takes; None for code or SQL whose time is unknown."""
        return None if self.effect is Effect.STATEMENTS else self.bytes / _BYTES_A_SECOND


def pending_changes() -> list[PendingChange]:
    """Return what all pending migrations do, in order; empty if the database has all of them."""
    executor = MigrationExecutor(connection)
    plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
    return [change for migration, _ in plan for change in _changes(migration)]


def _changes(migration: Migration) -> Iterator[PendingChange]:
    for operation in migration.operations:
        # Of the two halves, only the statements do something.
        inner = getattr(operation, "database_operations", [operation])
        for it in inner:
            yield _change(migration, it)


def _change(migration: Migration, operation: Operation) -> PendingChange:
    effect = _effect(operation)
    model = str(getattr(operation, "model_name", ""))
    size = 0 if effect is Effect.INSTANT or not model else _size(f"{migration.app_label}_{model.lower()}")
    return PendingChange(f"{migration.app_label}.{migration.name}", operation.describe(), effect, size)


def _effect(operation: Operation) -> Effect:
    if isinstance(operation, operations.AddField) and (
        getattr(operation.field, "db_index", False) or operation.field.unique
    ):
        return Effect.INDEX
    return _EFFECTS.get(type(operation), Effect.STATEMENTS)


def _size(table: str) -> int:
    with connection.cursor() as cursor:
        cursor.execute(_BYTES, [table])
        return int(cursor.fetchone()[0])
