"""Whether a pooler stands before the server and lends one of its sessions to several clients in turn.

What a search prepares in its session, and the locks that a sync holds in its own, would then be somebody else's.
"""

from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any, Final

import psycopg

from corecube.postgresql.answering import ask

#: Poolers of several processes share a port: of so many clients some meet the same process.
_CLIENTS: Final = 6
_PID_SQL: Final = "SELECT pg_backend_pid()"


def shares_sessions(parameters: Mapping[str, Any]) -> bool:
    """Return whether clients that are connected at once get the same session, or one client several.

    Raises psycopg.Error when the server cannot be reached.
    """
    with ExitStack() as stack:
        clients = [_client(stack, parameters)]
        pids = [ask(clients[0], _PID_SQL)]
        if pids == [str(clients[0].info.backend_pid)]:
            return False  # no pooler: it would have drawn a number of its own
        try:
            for _ in range(_CLIENTS - 1):
                clients.append(_client(stack, parameters))
                pids.append(ask(clients[-1], _PID_SQL))
                if len(set(pids)) < len(pids):
                    return True
        except psycopg.OperationalError:
            return False  # it has no session left, as it keeps one for each client
        return pids != [ask(client, _PID_SQL) for client in clients]


def _client(stack: ExitStack, parameters: Mapping[str, Any]) -> "psycopg.Connection[Any]":
    return stack.enter_context(psycopg.connect(**{**parameters, "autocommit": True}))
