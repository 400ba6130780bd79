"""A PostgreSQL server of an earlier major version, which the package of the embedded one also has."""

import shutil
import signal
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from corecube.embedded import install
from tests.postgres_server import PostgresServer


@contextmanager
def other_postgres() -> Iterator[str]:
    """Yield the address of an empty database on the server, with pgvector; it is stopped at the end."""
    with earlier_server() as (url, _, _):
        yield url


@contextmanager
def earlier_server() -> Iterator[tuple[str, Path, Callable[[], None]]]:
    """Yield the address of an empty database on the server, its data, and what kills it; it is stopped at the end."""
    name = tempfile.mkdtemp(prefix="corecube-test-")
    try:
        server = PostgresServer(Path(name), install.earlier_programs("16"))
        options = ("--auth=trust", "--username=postgres", "--encoding=UTF8", "--locale=C.UTF-8", "--no-sync")
        server.run("initdb", *options, server.data)
        server.begin()
        try:
            yield server.url("postgres"), server.data, partial(server.end, signal.SIGKILL)
        finally:
            server.end()
    finally:
        shutil.rmtree(name, ignore_errors=True)
