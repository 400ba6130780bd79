"""Says at once what is wrong with the server that DATABASE_URL names, before anything waits for it.

`manage.py migrate`, `manage.py start` and `manage.py check --database default` run these.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import psycopg
from django.core.checks import CheckMessage, Error, Tags, register
from django.db import connections

from corecube.errors import ConfigError, DatabaseUnavailableError
from corecube.postgresql.sharing import shares_sessions

_MIN_POSTGRESQL: Final = 15
_MIN_PGVECTOR: Final = (0, 8)
_CONNECT_SECONDS: Final = 5
_NO_ANSWER: Final = "corecube.E001"
_FACTS_SQL: Final = """
SELECT current_setting('server_version_num')::int / 10000,
       (SELECT default_version FROM pg_available_extensions WHERE name = 'vector'),
       (SELECT extversion FROM pg_extension WHERE extname = 'vector'),
       (SELECT rolsuper FROM pg_roles WHERE rolname = current_user)
       OR EXISTS (SELECT 1 FROM pg_available_extension_versions WHERE name = 'vector' AND trusted)
"""


@dataclass(frozen=True, slots=True)
class ServerFacts:
    """What a server says of itself."""

    #: PostgreSQL's major version.
    major: int
    #: The pgvector that can be created, such as "0.8.1"; None when the server has none.
    available: str | None
    #: The pgvector that the database has; None before the first migration.
    installed: str | None
    #: Whether this role may run CREATE EXTENSION vector.
    may_create: bool
    #: Whether a pooler lends its sessions for less than a client's connection.
    shares_sessions: bool = False


def server_problem(facts: ServerFacts) -> Error | None:
    """Return what keeps CoreCube from running on this server, or None."""
    if facts.shares_sessions:
        hint = "Set pool_mode = session in PgBouncer, or let DATABASE_URL name the server itself."
        message = "The pooler that DATABASE_URL names lends sessions for single transactions (transaction pooling)."
        return Error(message, hint=hint, id="corecube.E006")
    return _version_problem(facts)


def _version_problem(facts: ServerFacts) -> Error | None:
    """Return what PostgreSQL or pgvector lacks, or None."""
    if facts.major < _MIN_POSTGRESQL:
        return Error(
            f"The server is PostgreSQL {facts.major}; CoreCube needs {_MIN_POSTGRESQL} or newer.", id="corecube.E002"
        )
    if facts.available is None:
        return Error("The server has no pgvector.", hint="Install pgvector 0.8 or newer on it.", id="corecube.E003")
    if facts.installed is not None and _version(facts.installed) < _MIN_PGVECTOR <= _version(facts.available):
        hint = "Run ALTER EXTENSION vector UPDATE in it."
        return Error(
            f"The database still uses pgvector {facts.installed}; 0.8 is needed.", hint=hint, id="corecube.E004"
        )
    if _version(facts.available) < _MIN_PGVECTOR:
        return Error(f"The server's pgvector is {facts.available}; CoreCube needs 0.8 or newer.", id="corecube.E004")
    if facts.installed is None and not facts.may_create:
        hint = "Let an administrator run CREATE EXTENSION vector in it."
        return Error("The role of DATABASE_URL may not add pgvector to the database.", hint=hint, id="corecube.E005")
    return None


def _version(text: str) -> tuple[int, ...]:
    """Return a version's first two numbers."""
    return tuple(int(part) for part in text.split(".")[:2])


def server_facts(alias: str) -> ServerFacts:
    """Ask the server, on a connection outside the pool. Raises psycopg.Error when it does not answer."""
    parameters = {**connections[alias].get_connection_params(), "connect_timeout": _CONNECT_SECONDS}
    # Outside of a transaction, which a pooler may not allow: that is told by its own name.
    with psycopg.connect(**{**parameters, "autocommit": True}) as connection:
        row = connection.execute(_FACTS_SQL).fetchone()
    if row is None:
        raise psycopg.OperationalError("The server did not answer.")
    return replace(ServerFacts(*row), shares_sessions=shares_sessions(parameters))


@register(Tags.database)
def check_server(databases: Sequence[str] | None = None, **_: Any) -> list[CheckMessage]:  # noqa: ANN401 -- Django's signature
    """Check the servers that are not the embedded one."""
    aliases = [alias for alias in databases or () if connections[alias].settings_dict["ENGINE"] != "corecube.embedded"]
    return [problem for alias in aliases if (problem := _check(alias))]


def require_server() -> None:
    """Return when the server is the embedded one, or one that DATABASE_URL names and that can be used.

    Raises DatabaseUnavailableError when it does not answer, ConfigError when it can never do.
    """
    for problem in check_server(databases=["default"]):
        message = " ".join(filter(None, (problem.msg, problem.hint)))
        raise DatabaseUnavailableError(message) if problem.id == _NO_ANSWER else ConfigError(message)


def _check(alias: str) -> Error | None:
    """Return the first problem with one server."""
    try:
        return server_problem(server_facts(alias))
    except psycopg.Error as error:
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        return Error(f"The server that DATABASE_URL names cannot be used: {reason}", id=_NO_ANSWER)
