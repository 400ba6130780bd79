"""CoreCube behind a real PgBouncer, in every mode that it has."""

import json
import os
import subprocess
import sys

import pytest
from django.conf import settings

from corecube.checks import shares_sessions
from corecube.embedded.install import server_account
from corecube.embedded.server import embedded_server
from tests.pooler import pooler
from tests.profiles import turn

_SESSIONS = """
import json
from concurrent.futures import ThreadPoolExecutor
import django
django.setup()
from django.core.management import call_command
from django.db import connection
from corecube.database import Prepared, execution
from retrieval.ingest.sync import sync_lock
from corecube.models import Compartment, Connection

call_command("migrate", verbosity=0, interactive=False)
compartment = Compartment.objects.create(slug="c", name="C")
source = Connection.objects.create(slug="s", name="S", kind="push", compartment=compartment)
_SQL = Prepared("SELECT %(first)s::int + %(second)s::int")

def prepared(number):
    try:
        found = []
        for _ in range(5):
            with connection.cursor() as cursor:
                cursor.execute(execution(cursor, _SQL), {"first": number, "second": 1})
                found.append(cursor.fetchone()[0])
        return found == [number + 1] * 5
    finally:
        connection.close()

with connection.cursor() as cursor:
    cursor.execute("SHOW jit")
    jit = cursor.fetchone()[0]
with sync_lock(source):
    pass
with ThreadPoolExecutor(20) as threads:
    print(json.dumps([jit, all(threads.map(prepared, range(200)))]))
"""


@pytest.fixture(scope="module")
def socket_dir():
    return embedded_server(settings.CORECUBE_POSTGRES_DIR).socket_dir


@pytest.fixture
def bouncer(socket_dir):
    """Run PgBouncer in a mode, as the user who may open the server's socket; return its context."""
    account = server_account(settings.CORECUBE_POSTGRES_DIR).pw_name
    return lambda mode, **options: pooler(socket_dir, mode=mode, account=account, **options)


def parameters(port):
    return {"host": "127.0.0.1", "port": port, "user": "postgres", "dbname": "postgres"}


def run(*command, port, database="postgres"):
    url = f"postgres://postgres@127.0.0.1:{port}/{database}"
    return subprocess.run(
        [sys.executable, *command],
        cwd=settings.BASE_DIR,
        env={**os.environ, "DATABASE_URL": url, "DJANGO_SETTINGS_MODULE": "corecube.settings"},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


@pytest.mark.parametrize(
    ("mode", "size", "expected"),
    [
        ("session", 60, False),
        ("session", 2, False),
        ("transaction", 60, True),
        ("transaction", 1, True),
        ("statement", 60, True),
    ],
)
def test_a_pooler_is_known_by_what_it_does(bouncer, mode, size, expected):
    with bouncer(mode, size=size) as port:
        for _ in range(3):
            assert shares_sessions(parameters(port)) is expected


def test_a_server_without_a_pooler_shares_nothing(socket_dir):
    assert not shares_sessions({"host": socket_dir, "user": "postgres", "dbname": "postgres"})


@pytest.mark.parametrize(
    ("mode", "command"),
    turn(
        [
            ("transaction", ("-m", "uvicorn", "corecube.asgi:application", "--port=0")),
            ("statement", ("manage.py", "quality")),
            ("transaction", ("manage.py", "quality")),
            ("transaction", ("manage.py", "migrate")),
            ("transaction", ("manage.py", "start", "--prepare-only")),
            ("transaction", ("-m", "celery", "--app=corecube", "worker")),
        ],
        0,
        of=3,
    ),
)
def test_sessions_that_are_shared_are_refused_at_once(bouncer, mode, command):
    with bouncer(mode) as port:
        done = run(*command, port=port)
    assert done.returncode == 1
    assert "pool_mode = session" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.fixture
def own_database():
    """A new, empty database on the server, by its name."""
    name = f"pgbouncer_{os.getpid()}"
    with embedded_server(settings.CORECUBE_POSTGRES_DIR).connect("postgres") as connection:
        connection.execute(f"CREATE DATABASE {name}")
        yield name
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


def test_behind_whole_sessions_everything_works_as_it_is_shipped(bouncer, own_database):
    with bouncer("session") as port:
        done = run("-c", _SESSIONS, port=port, database=own_database)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == ["off", True]
