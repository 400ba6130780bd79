"""What a database distributed by Citus needs: settings that reach its shards, and reads that they can run."""

import json
import re
from collections.abc import Mapping
from functools import lru_cache
from time import monotonic, sleep
from typing import Any, Final
from weakref import WeakKeyDictionary

from django.db import connection
from psycopg import sql

from corecube.errors import DatabaseUnavailableError

#: Where one node stops early, and shards cannot.
_STOPPED: Final = re.compile(r"\n +LIMIT [^\n]+ -- on one node$", re.MULTILINE)
#: A condition on a document by a list of all documents that meet it, which one node makes once.
_LISTED: Final = re.compile(
    r"(?<![\w.])(?P<document>\w++\.\w++) IN \(\n\s+SELECT document\.id"
    r"(?P<read>\n\s+FROM retrieval_document AS document\n\s+WHERE)"
)
_LOOKED_UP: Final = r"(SELECT true\g<read> document.id = \g<document> AND"
_HAS_CITUS: Final = "SELECT to_regclass('pg_dist_partition') IS NOT NULL"
_HAS_SHARDS: Final = (
    "SELECT EXISTS (SELECT FROM pg_dist_partition WHERE logicalrelid = to_regclass('retrieval_document'))"
)
#: Hands on to the shards what SET LOCAL sets, and only that.
_HANDED_ON: Final = {"citus.propagate_set_commands": "local"}
#: Bytes of an index on all shards; the name of each ends with the shard's number.
_INDEX_BYTES: Final = """
SELECT coalesce(sum(result::bigint) FILTER (WHERE success), 0)::bigint
FROM run_command_on_shards('retrieval_embedding', format(
    'SELECT coalesce(sum(pg_relation_size(indexrelid)), 0) FROM pg_index'
    ' WHERE indrelid = ''%%%%s''::regclass AND indexrelid::regclass::text ^@ %%L', %s || '_'
))
"""
#: The transactions of each machine that wait for their commit there.
_PREPARED: Final = """
SELECT success, result
FROM run_command_on_all_nodes($$
    SELECT coalesce(json_agg(gid), '[]')
    FROM pg_prepared_xacts
    WHERE database = current_database() AND gid ^@ 'citus_'
$$)
"""
_COMMIT_SECONDS: Final = 90.0  #: Citus itself ends what a crash left, once a minute.
_PAUSE_SECONDS: Final = 0.005
_known: Final = WeakKeyDictionary[Any, bool]()


def has_citus() -> bool:
    """Return whether the database has the extension."""
    with connection.cursor() as cursor:
        cursor.execute(_HAS_CITUS)
        return bool(cursor.fetchone()[0])


def has_shards() -> bool:
    """Return whether the documents of the database lie on shards."""
    with connection.cursor() as cursor:
        return is_distributed(cursor)


def is_distributed(cursor: Any) -> bool:  # noqa: ANN401 -- Django's cursor wrapper has no public type
    """Return whether the documents lie on shards; each connection is asked once."""
    asked = cursor.connection
    if asked not in _known:
        _known[asked] = all(asked.execute(it).fetchone()[0] for it in (_HAS_CITUS, _HAS_SHARDS))
    return _known[asked]


def set_local(cursor: Any, settings: Mapping[str, str]) -> None:  # noqa: ANN401 -- as above
    """Set what ends with the transaction, on the shards too.

    Each setting is a separate statement: Citus hands on the whole message that one is in.
    """
    for name, value in ((_HANDED_ON if is_distributed(cursor) else {}) | dict(settings)).items():
        cursor.connection.execute(sql.SQL("SET LOCAL {} TO {}").format(sql.SQL(name), sql.Literal(value)))


def index_bytes(name: str) -> int:
    """Return the size of an index of the embeddings on all shards."""
    with connection.cursor() as cursor:
        cursor.execute(_INDEX_BYTES, [name])
        return int(cursor.fetchone()[0])


def await_commits() -> None:
    """Wait until every shard shows what the coordinator shows by now; return at once on one node.

    A transaction over several shards ends on the coordinator first. Raises DatabaseUnavailableError if a machine does
    not answer, or one of its transactions does not end.
    """
    with connection.cursor() as cursor:
        if not is_distributed(cursor):
            return
        waiting, until = _prepared(cursor), monotonic() + _COMMIT_SECONDS
        while waiting and monotonic() < until:
            sleep(_PAUSE_SECONDS)
            waiting &= _prepared(cursor)
    if waiting:
        raise DatabaseUnavailableError


def _prepared(cursor: Any) -> set[str]:  # noqa: ANN401 -- Django's cursor wrapper has no public type
    cursor.execute(_PREPARED)
    answers = cursor.fetchall()
    if not all(is_well for is_well, _ in answers):
        raise DatabaseUnavailableError
    return {gid for _, gids in answers for gid in json.loads(gids)}


@lru_cache
def for_shards(statement: str) -> str:
    """Return a statement as a distributed database can run it.

    Its shards cannot stop after a few rows for each of some values, so they read on. They would list the documents of
    all shards, so each looks up its own.
    """
    return _LISTED.sub(_LOOKED_UP, _STOPPED.sub("", statement))
