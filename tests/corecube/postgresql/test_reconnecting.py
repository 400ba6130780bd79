"""The pool while its server goes away and comes back: a small server of the test's own that speaks for PostgreSQL."""

import os
import select
import socket
import threading
import time
from contextlib import suppress

import psycopg
import pytest
from django.conf import settings
from psycopg_pool import PoolTimeout

from corecube.embedded.server import embedded_server
from corecube.postgresql.base import TRUSTED_SECONDS, ReconnectingPool, answers, ask

#: Far more than a step takes that does not wait for anything, on a busy machine too.
_SOON = 60


class Gate:
    """A socket in front of the embedded server that can be closed, cut and held up."""

    def __init__(self, folder):
        self.target = f"{embedded_server(settings.CORECUBE_POSTGRES_DIR).socket_dir}/.s.PGSQL.5432"
        self.path = f"{folder}/.s.PGSQL.5432"
        self.flows = threading.Event()
        self.flows.set()
        self.pairs = []
        self.listener = None

    def open(self):
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(self.path)
        self.listener.listen(50)
        threading.Thread(target=self._serve, args=(self.listener,), daemon=True).start()

    def close(self):
        """Refuse new connections and cut those that are there, as a server that is killed does."""
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        os.unlink(self.path)  # noqa: PTH108 -- a socket
        for end in (end for pair in self.pairs for end in pair):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        self.pairs.clear()

    def _serve(self, listener):
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            server = socket.socket(socket.AF_UNIX)
            server.connect(self.target)
            self.pairs.append((client, server))
            threading.Thread(target=self._pass_on, args=(client, server), daemon=True).start()

    def _pass_on(self, client, server):
        other = {client: server, server: client}
        # Cutting the two of them ends it.
        with client, server, suppress(OSError):
            while True:
                ready, _, _ = select.select([client, server], [], [])
                for end in ready:
                    data = end.recv(65536)
                    self.flows.wait()
                    if not data:
                        return
                    other[end].sendall(data)


@pytest.fixture
def gate(tmp_path_factory):
    gate = Gate(tmp_path_factory.mktemp("gate"))
    gate.open()
    yield gate
    gate.flows.set()
    if gate.listener.fileno() >= 0:
        gate.close()


@pytest.fixture
def pool(gate):
    parameters = {
        "host": os.path.dirname(gate.path),  # noqa: PTH120 -- a text is wanted
        "user": "postgres",
        "dbname": "postgres",
        "autocommit": True,
        "connect_timeout": 2,
    }
    with ReconnectingPool(kwargs=parameters, min_size=1, max_size=20, timeout=5, open=False) as pool:
        yield pool


def use(pool):
    with pool.connection() as connection:
        return connection.execute("SELECT 1").fetchone()


def fill(pool, count):
    """Let the pool hold so many idle connections."""
    taken = [pool.getconn() for _ in range(count)]
    for connection in taken:
        pool.putconn(connection)


def test_every_idle_connection_of_a_server_that_came_back_is_replaced_for_the_first_who_asks(gate, pool):
    fill(pool, 15)
    gate.close()
    gate.open()
    began = time.monotonic()
    assert use(pool) == (1,)
    # psycopg's own pool would pause for a second after the first, for two after the next, and give up.
    assert time.monotonic() - began < pool.timeout


def test_while_the_server_is_away_who_asks_is_told_why_and_does_not_wait(gate, pool):
    use(pool)
    gate.close()
    for _ in range(3):
        began = time.monotonic()
        with pytest.raises(psycopg.OperationalError, match="No such file") as caught:
            use(pool)
        assert not isinstance(caught.value, PoolTimeout)
        assert time.monotonic() - began < pool.timeout


def test_a_server_that_was_away_for_long_serves_the_first_who_asks(gate, pool):
    use(pool)
    gate.close()
    # Each attempt would double the pause of a pool that backs off.
    for _ in range(20):
        with pytest.raises(psycopg.OperationalError):
            use(pool)
    gate.open()
    assert use(pool) == (1,)
    assert pool.get_stats()["pool_size"] <= pool.max_size


def test_everybody_who_waits_is_told(gate, pool):
    use(pool)
    gate.close()
    ends = []

    def ask_pool():
        try:
            use(pool)
        except psycopg.OperationalError as error:
            ends.append(type(error))

    threads = [threading.Thread(target=ask_pool) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(_SOON)
    assert len(ends) == 12
    assert PoolTimeout not in ends


def test_a_connection_that_is_never_answered_is_given_up(gate, pool):
    use(pool)
    gate.flows.clear()
    time.sleep(TRUSTED_SECONDS)
    with pytest.raises(psycopg.OperationalError):
        use(pool)
    gate.flows.set()
    assert use(pool) == (1,)


def test_the_connections_at_work_are_waited_for(gate, pool):
    held = [pool.getconn() for _ in range(3)]
    pool.resize(1, 3)
    threading.Timer(0.3, pool.putconn, held[:1]).start()
    assert use(pool) == (1,)
    for connection in held[1:]:
        pool.putconn(connection)


def test_a_statement_is_answered_with_its_first_value(gate, pool):
    with pool.connection() as connection:
        assert ask(connection, "SELECT 41 + 1") == "42"
        assert answers(connection)
        gate.flows.clear()
        assert not answers(connection)
        assert connection.closed


def test_a_server_that_takes_connections_and_answers_nothing_is_named(gate, pool):
    with pool.connection() as connection:
        gate.flows.clear()
        with pytest.raises(psycopg.OperationalError, match="default_pool_size"):
            ask(connection, "SELECT 1")
