"""The benchmark's database, on the server of the application's database.

A comment on the database marks it as created by the benchmark and describes its content once it is filled: later runs
can reuse it, and other databases are never dropped.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

import psycopg
from django.conf import settings
from django.core.management import call_command
from django.db import connection
from psycopg import sql

from corecube.embedded.postmaster import read_postmaster
from corecube.embedded.server import release
from corecube.errors import InvalidRequestError

_LOCK: Final = 7_302
_MADE_BY: Final = "corecube bench"
_CREATE: Final = sql.SQL("CREATE DATABASE {}")

_Server = psycopg.Connection[tuple[Any, ...]]  #: A connection to the application's database, outside Django's pool.


@dataclass(frozen=True, slots=True)
class Scratch:
    """The scratch database, which Django's default connection uses in the meantime."""

    server: _Server
    name: str
    recipe: Mapping[str, Any]  #: Everything that determines the content of the filled database.
    reused: Mapping[str, Any] | None

    def remember(self, facts: Mapping[str, Any]) -> None:
        """Store that the database is filled, with facts for the next run."""
        _describe(self.server, self.name, {"recipe": self.recipe, "facts": facts})


@contextmanager
def scratch_database(recipe: Mapping[str, Any], *, keep: bool) -> Iterator[Scratch]:
    """Connect Django to a migrated scratch database, new or from an earlier run with the same recipe.

    It is dropped at the end, unless `keep` is set and it was filled. Raises InvalidRequestError if another run uses it,
    or if the benchmark did not create the database with its name.
    """
    name = f"{connection.settings_dict['NAME']}_bench"
    with psycopg.connect(**connection.get_connection_params(), autocommit=True) as server:
        if server.execute("SELECT pg_try_advisory_lock(%s)", [_LOCK]).fetchone() != (True,):
            raise InvalidRequestError(f"Another benchmark is using the database {name}.")
        note = _note(server, name)
        reused = note["facts"] if note and note.get("recipe") == recipe else None
        if reused is None:
            _drop(server, name)
            server.execute(_CREATE.format(sql.Identifier(name)))
            _describe(server, name, {})
        try:
            with _connected_to(name):
                call_command("migrate", verbosity=0, interactive=False)
                yield Scratch(server, name, recipe, reused)
        finally:
            if not keep or "recipe" not in (_note(server, name) or {}):
                _drop(server, name)


def restart_server() -> bool:
    """Stop an embedded server that no other process uses, for a later restart; return whether it was stopped."""
    if connection.settings_dict["ENGINE"] != "corecube.embedded":
        return False
    data_dir = settings.CORECUBE_POSTGRES_DIR
    before = read_postmaster(data_dir)
    connection.close()
    connection.close_pool()  # type: ignore[attr-defined]  # the stubs know what all backends share
    release(data_dir)
    return before is not None and read_postmaster(data_dir) != before


@contextmanager
def _connected_to(name: str) -> Iterator[None]:
    """Connect the default connections of all threads, and their pool, to another database."""
    before = connection.settings_dict["NAME"]
    _connect_to(name)
    try:
        yield
    finally:
        _connect_to(before)


def _connect_to(name: str) -> None:
    connection.close()
    connection.close_pool()  # type: ignore[attr-defined]  # the stubs know what all backends share
    connection.settings_dict["NAME"] = name


def _note(server: _Server, name: str) -> dict[str, Any] | None:
    """Return the benchmark's comment on the database, None if there is no such database."""
    row = server.execute(
        "SELECT shobj_description(oid, 'pg_database') FROM pg_database WHERE datname = %s", [name]
    ).fetchone()
    if row is None:
        return None
    try:
        note: dict[str, Any] = json.loads(row[0] or "")
    except ValueError:
        note = {}
    if note.get("made_by") != _MADE_BY:
        raise InvalidRequestError(f"The benchmark did not create the database {name}: rename or drop it first.")
    return note


def _describe(server: _Server, name: str, note: Mapping[str, Any]) -> None:
    text = json.dumps({"made_by": _MADE_BY, **note})
    server.execute(sql.SQL("COMMENT ON DATABASE {} IS {}").format(sql.Identifier(name), sql.Literal(text)))


def _drop(server: _Server, name: str) -> None:
    server.execute(sql.SQL("DROP DATABASE IF EXISTS {}").format(sql.Identifier(name)))
