"""Rows that cost much to make, kept so that the next test of the process gets them by copying."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import count
from typing import Final

import psycopg
from django.db import connection, transaction
from django.db.models import Model

_numbers = count()
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


def same_rows(**rows: Model) -> None:
    """Create rows of one kind in one statement, as `same_row` does each by its name."""
    for name, row in rows.items():
        row.pk = _ids.get((type(row), name))
    kind = type(next(iter(rows.values())))
    kind.objects.bulk_create(rows.values())
    _ids.update({(kind, name): row.pk for name, row in rows.items()})


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
    """The tables that something changed, each as a whole, and the indexes that it made.

    They are copied within the database, from tables beside its own; one whose rows name a folder of the test is kept
    here, as the next test has another folder.
    """

    statement: str  #: Puts the tables and indexes back.
    named: Mapping[str, bytes]  #: The tables whose rows hold the text that stands for something else.

    @classmethod
    def since(cls, before: Stand, *, text: str = "") -> "KeptRows":
        """Return what has changed since then; `text` is what other tests have another one for."""
        after = Stand.now()
        tables = {name: _rows(name) for name, digest in after.digests.items() if before.digests.get(name) != digest}
        named = {name: rows for name, rows in tables.items() if text and text.encode() in rows}
        kept = {name: _keep(name, rows) for name, rows in tables.items() if name not in named}
        statements = [
            *(f'DELETE FROM "{name}"' for name in tables),
            *(f'INSERT INTO "{name}" SELECT * FROM {copy}' for name, copy in kept.items()),
            *(made for name, made in after.indexes.items() if name not in before.indexes),
        ]
        return cls("; ".join(statements), named)

    def put_back(self, text: str = "", stands_for: str = "") -> None:
        """Make the tables what they were when they were kept, with one text in them replaced.

        Foreign keys are checked at the end of a transaction, so that the order of the tables does not matter.
        """
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(self.statement)
            for name, rows in self.named.items():
                with cursor.copy(f'COPY "{name}" FROM STDIN') as copy:
                    copy.write(rows.replace(text.encode(), stands_for.encode()))


def _rows(table: str) -> bytes:
    with connection.cursor() as cursor, cursor.copy(f'COPY "{table}" TO STDOUT') as copy:
        return b"".join(copy)


def _keep(table: str, rows: bytes) -> str:
    """Store rows for the tests to come in a table of the schema `kept`, and return its name.

    On a connection that commits: the test's own transaction ends without a trace.
    """
    name = f"kept.kept_{next(_numbers)}"
    with psycopg.connect(**connection.get_connection_params(), autocommit=True) as own:
        own.execute("CREATE SCHEMA IF NOT EXISTS kept")
        own.execute(f'CREATE TABLE {name} (LIKE public."{table}")')
        with own.cursor().copy(f"COPY {name} FROM STDIN") as copy:
            copy.write(rows)
    return name


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
