"""Rows that cost much to make, kept so that the next test of the process gets them by copying."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from django.db import connection, transaction
from django.db.models import Model

_ids: dict[tuple[type[Model], str], int] = {}
_TABLES: Final = "SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY tablename"
#: Migrations fill these for all tests.
_FILLED: Final = ("django_migrations", "django_content_type", "auth_permission")
_INDEXES: Final = "SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = 'public'"


def same_row(manager, name, /, **fields):
    """Create a row that has, in every test of the process, the id that it had in the first."""
    row = manager.create(**fields, **{"id": known} if (known := _ids.get((manager.model, name))) else {})
    _ids[manager.model, name] = row.pk
    return row


@dataclass(frozen=True, slots=True)
class Stand:
    """What the database holds at some moment."""

    #: A digest of each table's rows.
    digests: Mapping[str, str]
    #: The statement that makes each index.
    indexes: Mapping[str, str]

    @classmethod
    def now(cls) -> "Stand":
        """Return what the connection's transaction sees."""
        with connection.cursor() as cursor:
            cursor.execute(_TABLES)
            tables = [name for (name,) in cursor.fetchall()]
            rows = " UNION ALL ".join(
                f"SELECT '{name}', md5(coalesce(string_agg(it::text, ' ' ORDER BY it::text), '')) FROM \"{name}\" it"
                for name in tables
            )
            cursor.execute(rows)
            digests = dict(cursor.fetchall())
            cursor.execute(_INDEXES)
            return cls(digests, dict(cursor.fetchall()))


@dataclass(frozen=True, slots=True)
class KeptRows:
    """The tables that something changed, each as a whole, and the indexes that it made."""

    tables: Mapping[str, bytes]
    indexes: tuple[str, ...]

    @classmethod
    def since(cls, before: Stand) -> "KeptRows":
        """Return what has changed since then."""
        after = Stand.now()
        changed = [name for name, digest in after.digests.items() if before.digests.get(name) != digest]
        made = tuple(text for name, text in after.indexes.items() if name not in before.indexes)
        return cls({name: _rows(name) for name in changed}, made)

    def put_back(self, text: str, stands_for: str) -> None:
        """Make the tables what they were when they were kept, with one text in them replaced.

        Foreign keys are checked at the end of a transaction, so that the order of the tables does not matter.
        """
        with transaction.atomic(), connection.cursor() as cursor:
            for name, rows in self.tables.items():
                cursor.execute(f'DELETE FROM "{name}"')
                with cursor.copy(f'COPY "{name}" FROM STDIN') as copy:
                    copy.write(rows.replace(text.encode(), stands_for.encode()))
            for statement in self.indexes:
                cursor.execute(statement)


def _rows(table: str) -> bytes:
    with connection.cursor() as cursor, cursor.copy(f'COPY "{table}" TO STDOUT') as copy:
        return b"".join(copy)


_HNSW_INDEXES: Final = f"SELECT indexname FROM ({_INDEXES}) made WHERE indexdef LIKE '% USING hnsw %'"


def empty_tables(_case: object = None) -> None:
    """Empty the tables that hold rows, as Django's flush does, without filling permissions and content types anew.

    An HNSW index walks over the rows of other tests too, deleted or rolled back, and finds fewer of the test's own:
    none is left.
    """
    with connection.cursor() as cursor:
        cursor.execute(_TABLES)
        tables = [f'"{name}"' for (name,) in cursor.fetchall() if name not in _FILLED]
        looks = " UNION ALL ".join(f"SELECT '{name}' WHERE EXISTS (SELECT FROM {name})" for name in tables)
        cursor.execute(looks)
        filled = [name for (name,) in cursor.fetchall()]
        # Without triggers, rows can go before those that refer to them.
        deletions = [f"DELETE FROM {name}" for name in filled]
        cursor.execute(
            "; ".join(["SET session_replication_role = replica", *deletions, "RESET session_replication_role"])
        )
        cursor.execute(_HNSW_INDEXES)
        for (index,) in cursor.fetchall():
            cursor.execute(f'DROP INDEX "{index}"')
