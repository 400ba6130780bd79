"""The bench's own database, beside the application's on the same server.

A comment on the database says that the bench made it and, once it is filled, what it holds: so another run can use
a kept one again, and a database that somebody else made is never dropped.
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

#: Key of the advisory lock that keeps two runs apart.
_LOCK: Final = 7_302
_MADE_BY: Final = "corecube bench"
_EMBEDDED: Final = "corecube.embedded"

#: A connection to the application's database, outside Django's pool.
_Server = psycopg.Connection[tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class Scratch:
    """The scratch database, which Django's default connection points at while it is in use."""

    server: _Server
    name: str
    #: All that decides what the database holds once it is filled.
    recipe: Mapping[str, Any]
    #: What was remembered of a kept database that holds what is wanted; None for a new, empty one.
    kept: Mapping[str, Any] | None

    def remember(self, facts: Mapping[str, Any]) -> None:
        """Note that the database is filled, and what is worth telling the next run."""
        _describe(self.server, self.name, {"recipe": self.recipe, "facts": facts})


@contextmanager
def scratch_database(recipe: Mapping[str, Any], *, keep: bool) -> Iterator[Scratch]:
    """Point Django at a migrated scratch database, kept from a run with the same recipe or new.

    It is dropped at the end, unless it is to be kept and was filled. Raises InvalidRequestError when another run
    is using it, or when a database of its name was not made by the bench.
    """
    name = f"{connection.settings_dict['NAME']}_bench"
    with psycopg.connect(**connection.get_connection_params(), autocommit=True) as server:
        _lock(server, name)
        note = _note(server, name)
        kept = note["facts"] if note and note.get("recipe") == recipe else None
        if kept is None:
            _drop(server, name)
            _create(server, name)
        try:
            with _pointed_at(name):
                call_command("migrate", verbosity=0, interactive=False)
                yield Scratch(server, name, recipe, kept)
        finally:
            if not keep or "recipe" not in (_note(server, name) or {}):
                _drop(server, name)


def restart_server() -> bool:
    """Stop the embedded server, which the next connection starts again; return whether it was stopped.

    It is not where another process uses it too, and a server of somebody else's is left alone.
    """
    if connection.settings_dict["ENGINE"] != _EMBEDDED:
        return False
    data_dir = settings.CORECUBE_POSTGRES_DIR
    before = read_postmaster(data_dir)
    connection.close()
    connection.close_pool()  # type: ignore[attr-defined]  # the stubs know what all backends share
    release(data_dir)
    return before is not None and read_postmaster(data_dir) != before


@contextmanager
def _pointed_at(name: str) -> Iterator[None]:
    """Let every thread's default connection, and the pool behind them, lead to another database."""
    before = connection.settings_dict["NAME"]
    _point_at(name)
    try:
        yield
    finally:
        _point_at(before)


def _point_at(name: str) -> None:
    connection.close()
    connection.close_pool()  # type: ignore[attr-defined]  # the stubs know what all backends share
    connection.settings_dict["NAME"] = name


def _lock(server: _Server, name: str) -> None:
    row = server.execute("SELECT pg_try_advisory_lock(%s)", [_LOCK]).fetchone()
    if row != (True,):
        raise InvalidRequestError(f"Another run of the bench is using the database {name}.")


def _note(server: _Server, name: str) -> dict[str, Any] | None:
    """Return what the bench noted on the database, or None when there is no such database."""
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
        raise InvalidRequestError(f"There is a database {name} that the bench did not make; rename or drop it first.")
    return note


def _create(server: _Server, name: str) -> None:
    server.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    _describe(server, name, {})


def _describe(server: _Server, name: str, note: Mapping[str, Any]) -> None:
    text = json.dumps({"made_by": _MADE_BY, **note})
    server.execute(sql.SQL("COMMENT ON DATABASE {} IS {}").format(sql.Identifier(name), sql.Literal(text)))


def _drop(server: _Server, name: str) -> None:
    server.execute(sql.SQL("DROP DATABASE IF EXISTS {}").format(sql.Identifier(name)))
