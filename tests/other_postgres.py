"""A PostgreSQL server of an earlier major version, which the package of the embedded one also has."""

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

from corecube.embedded import install
from tests.race import until


@contextmanager
def other_postgres() -> Iterator[str]:
    """Yield the address of an empty database on the server, with pgvector; it is stopped at the end."""
    with earlier_server() as (url, _, _):
        yield url


@contextmanager
def earlier_server() -> Iterator[tuple[str, Path, Callable[[], None]]]:
    """Yield the address of an empty database on the server, its data, and what kills it; it is stopped at the end."""
    programs = install.earlier_programs("16")
    name = tempfile.mkdtemp(prefix="corecube-test-")
    try:
        folder = Path(name)
        data, account = folder / "data", install.server_account(folder / "data")
        os.chown(folder, account.pw_uid, account.pw_gid)
        options = {"cwd": folder, "env": install.clean_environment(), "stdout": subprocess.DEVNULL}
        if os.geteuid() == 0:
            options |= {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}
        initdb = [programs / "initdb", "--auth=trust", "--username=postgres", "--encoding=UTF8", "--locale=C.UTF-8"]
        subprocess.run([*initdb, "--no-sync", data], check=True, **options)
        server = subprocess.Popen(
            [programs / "postgres", "-D", data, "-k", folder, "-c", "listen_addresses=", "-c", "fsync=off"],
            **options,
            stderr=subprocess.DEVNULL,
        )

        def end(sent: signal.Signals) -> None:
            server.send_signal(sent)
            server.wait()

        url = f"postgres://postgres@/postgres?host={folder}"
        try:
            until(lambda: _answers(url), seconds=60)
            yield url, data, lambda: end(signal.SIGKILL)
        finally:
            end(signal.SIGINT)
    finally:
        shutil.rmtree(name, ignore_errors=True)


def _answers(url):
    try:
        psycopg.connect(url).close()
    except psycopg.OperationalError:
        return False
    return True
