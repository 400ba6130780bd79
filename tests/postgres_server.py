"""PostgreSQL servers of the tests' own, from the package of the embedded one."""

import os
import signal
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path

import psycopg

from corecube.embedded import install
from tests.migrated import copy_migrated_server
from tests.race import until


class PostgresServer:
    """A server in a folder, reached by a socket there. Its data, below `postgres`, is made or copied before."""

    def __init__(self, folder, programs=None, account=None):
        self.folder, self.data = folder, folder / "postgres"
        self.programs = programs or install.program("postgres").parent
        self._account = account or install.server_account(self.data)
        os.chown(folder, self._account.pw_uid, self._account.pw_gid)

    def url(self, database):
        """Return the address of a database."""
        return f"postgres://postgres@/{database}?host={self.folder}"

    def run(self, program, *options):
        """Run a program of the server's version."""
        subprocess.run([self.programs / program, *options], check=True, **self._options)

    def begin(self):
        """Start, and wait until it answers."""
        command = [self.programs / "postgres", "-D", self.data, "-k", self.folder]
        self._process = subprocess.Popen(
            [*command, "-c", "listen_addresses=", "-c", "fsync=off"], **self._options, stderr=subprocess.DEVNULL
        )
        until(self._answers, seconds=60)

    def send(self, number):
        """Send a signal to all processes of the server."""
        for pid in (self._process.pid, *self._backends()):
            os.kill(pid, number)

    def end(self, number=signal.SIGINT):
        """Stop, by default as a system does that shuts down."""
        self._process.send_signal(number)
        self._process.wait()

    def execute(self, statement):
        """Run a statement in CoreCube's database; return its rows."""
        with psycopg.connect(self.url("corecube"), autocommit=True) as connection:
            cursor = connection.execute(statement)
            return cursor.fetchall() if cursor.description else []

    @property
    def _options(self):
        options = {"cwd": self.folder, "env": install.clean_environment(), "stdout": subprocess.DEVNULL}
        if os.geteuid() == 0:
            options |= {"user": self._account.pw_uid, "group": self._account.pw_gid, "extra_groups": []}
        return options

    def _answers(self):
        try:
            psycopg.connect(self.url("postgres")).close()
        except psycopg.OperationalError:
            return False
        return True

    def _backends(self):
        children = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children")
        return map(int, children.read_text().split())


@contextmanager
def running_server():
    """Yield a server with CoreCube's tables, which are empty."""
    with tempfile.TemporaryDirectory(prefix="corecube-test-") as name:
        copy_migrated_server(Path(name))
        server = PostgresServer(Path(name))
        server.begin()
        try:
            yield server
        finally:
            server.end()


@contextmanager
def primary_and_replica():
    """Yield a server with CoreCube's tables, and a replica that streams its changes."""
    with running_server() as primary, tempfile.TemporaryDirectory(prefix="corecube-test-") as name:
        replica = PostgresServer(Path(name), account=install.server_account(primary.data))
        source = ("--write-recovery-conf", f"--host={primary.folder}", "--user=postgres")
        replica.run("pg_basebackup", f"--pgdata={replica.data}", *source, "--checkpoint=fast", "--no-sync")
        replica.begin()
        try:
            yield primary, replica
        finally:
            replica.end()
