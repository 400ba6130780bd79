"""Checks of the server that DATABASE_URL names.

`manage.py migrate`, `manage.py start` and `manage.py check --database default` run these.
"""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any, Final

import psycopg
from django.core.checks import CheckMessage, Error, Tags, register
from django.db import connections

from corecube.errors import ConfigError, DatabaseUnavailableError, first_line
from corecube.postgresql.base import ask

_MIN_POSTGRESQL: Final = 15
_MIN_PGVECTOR: Final = (0, 8)
_CONNECT_SECONDS: Final = 5
_CLIENTS: Final = 6  #: Clients to detect shared sessions, as poolers with several processes share a port.
_PID_SQL: Final = "SELECT pg_backend_pid()"
NO_ANSWER: Final = "corecube.E001"  #: The id of the only problem whose message has words of the driver.
_FACTS_SQL: Final = """
SELECT current_setting('server_version_num')::int / 10000,
       (SELECT default_version FROM pg_available_extensions WHERE name = 'vector'),
       (SELECT extversion FROM pg_extension WHERE extname = 'vector'),
       (SELECT rolsuper FROM pg_roles WHERE rolname = current_user)
       OR EXISTS (SELECT 1 FROM pg_available_extension_versions WHERE name = 'vector' AND trusted)
"""


@dataclass(frozen=True, slots=True)
class ServerFacts:
    """Properties of a server."""

    major: int  #: PostgreSQL's major version.
    available: str | None  #: The available version of pgvector, such as "0.8.1"; None without pgvector.
    installed: str | None  #: The version of pgvector in the database; None before the first migration.
    may_create: bool  #: Whether this role may run CREATE EXTENSION vector.
    shares_sessions: bool = False  #: Whether a pooler shares sessions between clients (transaction pooling).


def server_problem(facts: ServerFacts) -> Error | None:
    """Return the problem that prevents CoreCube from using this server, or None."""
    if facts.shares_sessions:
        hint = "Set pool_mode = session in PgBouncer, or set DATABASE_URL to the server itself."
        message = "The pooler in DATABASE_URL uses transaction pooling."
        return Error(message, hint=hint, id="corecube.E006")
    return _version_problem(facts)


def _version_problem(facts: ServerFacts) -> Error | None:
    if facts.major < _MIN_POSTGRESQL:
        return Error(
            f"The server is PostgreSQL {facts.major}; CoreCube requires {_MIN_POSTGRESQL} or newer.", id="corecube.E002"
        )
    if facts.available is None:
        return Error("The server has no pgvector.", hint="Install pgvector 0.8 or newer.", id="corecube.E003")
    if facts.installed is not None and _version(facts.installed) < _MIN_PGVECTOR <= _version(facts.available):
        hint = "Run ALTER EXTENSION vector UPDATE in the database."
        return Error(f"The database uses pgvector {facts.installed}; 0.8 is required.", hint=hint, id="corecube.E004")
    if _version(facts.available) < _MIN_PGVECTOR:
        return Error(f"The server's pgvector is {facts.available}; CoreCube requires 0.8 or newer.", id="corecube.E004")
    if facts.installed is None and not facts.may_create:
        hint = "Ask an administrator to run CREATE EXTENSION vector in the database."
        return Error("The role in DATABASE_URL may not create the extension pgvector.", hint=hint, id="corecube.E005")
    return None


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(".")[:2])


def server_facts(alias: str) -> ServerFacts:
    """Query the server on a connection outside the pool. Raises psycopg.Error."""
    parameters = {**connections[alias].get_connection_params(), "connect_timeout": _CONNECT_SECONDS}
    # In autocommit mode: a pooler may not allow a transaction, which is reported as its own problem.
    with psycopg.connect(**{**parameters, "autocommit": True}) as connection:
        row = connection.execute(_FACTS_SQL).fetchone()
    if row is None:
        raise psycopg.OperationalError("The server did not respond.")
    return replace(ServerFacts(*row), shares_sessions=shares_sessions(parameters))


@register(Tags.database)
def check_server(databases: Sequence[str] | None = None, **_: Any) -> list[CheckMessage]:  # noqa: ANN401 -- Django's signature
    """Check the servers that are not the embedded one."""
    aliases = [alias for alias in databases or () if connections[alias].settings_dict["ENGINE"] != "corecube.embedded"]
    return [problem for alias in aliases if (problem := _check(alias))]


def require_server() -> None:
    """Check the server in DATABASE_URL, if any; raise DatabaseUnavailableError, ConfigError for a permanent problem."""
    for problem in check_server(databases=["default"]):
        message = " ".join(filter(None, (problem.msg, problem.hint)))
        raise DatabaseUnavailableError(message) if problem.id == NO_ANSWER else ConfigError(message)


def _check(alias: str) -> Error | None:
    try:
        return server_problem(server_facts(alias))
    except psycopg.Error as error:
        return Error(f"The server in DATABASE_URL is not available: {first_line(error)}", id=NO_ANSWER)


def shares_sessions(parameters: Mapping[str, Any]) -> bool:
    """Return whether a pooler gives several clients the same session, or one client several sessions.

    Prepared statements and locks of a session would then affect other clients. Raises psycopg.Error.
    """
    with ExitStack() as stack:
        clients = [_client(stack, parameters)]
        pids = [ask(clients[0], _PID_SQL)]
        if pids == [str(clients[0].info.backend_pid)]:
            return False  # no pooler, which would report its own id
        try:
            for _ in range(_CLIENTS - 1):
                clients.append(_client(stack, parameters))
                pids.append(ask(clients[-1], _PID_SQL))
                if len(set(pids)) < len(pids):
                    return True
        except psycopg.OperationalError:
            return False  # no session is left, so each client has its own
        return pids != [ask(client, _PID_SQL) for client in clients]


def _client(stack: ExitStack, parameters: Mapping[str, Any]) -> "psycopg.Connection[Any]":
    return stack.enter_context(psycopg.connect(**{**parameters, "autocommit": True}))
