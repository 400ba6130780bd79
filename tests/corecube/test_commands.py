"""Every command of ours where the database was never migrated, and where there is none."""

import json
import os
import subprocess
import sys

import pytest
from django.conf import settings
from django.core.management import call_command, get_commands

from corecube.embedded.server import embedded_server
from tests.installation import new_installation

#: What each command needs beside its name.
_ARGUMENTS = {
    "backup": ["/tmp/none"],
    "bench": ["--chunks", "1"],
    "bm25": ["status"],
    "distribute": ["--dry-run"],
    "doctor": [],
    "vectors": ["status"],
    "calibrate": ["--show"],
    "encodings": ["status"],
    "enrich": ["--connection", "any"],
    "evaluate": ["--all", "."],
    "evidence": ["--user", "anybody"],
    "graph": ["status"],
    "indexes": ["status"],
    "ingest": ["."],
    "jobs": [],
    "models": ["list"],
    "plan": ["--chunks", "1000"],
    "preview": ["."],
    "quality": [],
    "restore": ["/tmp/none"],
    "samples": [],
    "showconfig": [],
    "sign_ins": ["lift"],
    "tunables": [],
    "upgrade": ["--check"],
}
#: They need no table of the database; `start` and `restore` make all of them.
#: They need no table of the database; `start` and `restore` make all of them.
_WITHOUT_TABLES = {"bench", "doctor", "models", "plan", "restore", "showconfig", "tunables", "upgrade"}
_SCRIPT = """
import io, json, sys
from contextlib import redirect_stderr, redirect_stdout
import django
django.setup()
from django.core.management import get_commands, load_command_class
told = {}
for name, arguments in json.loads(sys.argv[1]).items():
    errors = io.StringIO()
    with redirect_stderr(errors), redirect_stdout(io.StringIO()):
        try:
            load_command_class(get_commands()[name], name).run_from_argv(["manage.py", name, *arguments])
            status = 0
        except SystemExit as end:
            status = end.code
        except Exception as error:
            status = f"{type(error).__name__}: {error}"
    told[name] = [status, errors.getvalue()]
print(json.dumps([told, "corecube.urls" in sys.modules]))
"""


def ours():
    return {name for name, app in get_commands().items() if app in {"corecube", "retrieval", "explorer"}}


def told_by_commands(environment):
    """Return how each command ended, and what it printed about it; none of them loads the pages and APIs."""
    done = subprocess.run(
        [sys.executable, "-c", _SCRIPT, json.dumps(_ARGUMENTS)],
        cwd=settings.BASE_DIR,
        env={**environment, "DJANGO_SETTINGS_MODULE": "corecube.settings"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    told, loads_pages = json.loads(done.stdout.splitlines()[-1])
    assert not loads_pages
    return told


def test_every_command_is_tried_here():
    assert ours() - {"start", "docs"} == _ARGUMENTS.keys()


@pytest.fixture(scope="module")
def empty():
    """The environment of an installation whose database is empty."""
    with new_installation(is_migrated=False) as environment:
        yield environment


def test_on_a_database_that_was_never_migrated_every_command_says_what_to_do(empty):
    told = told_by_commands(empty)
    for name, (status, errors) in told.items():
        assert "Traceback" not in errors, name
        if name in _WITHOUT_TABLES:
            assert status == (1 if name in {"bench", "doctor", "restore"} else 0), (name, errors)
        else:
            assert (status, "manage.py migrate" in errors) == (1, True), (name, status, errors)


def test_without_a_database_every_command_says_so_in_a_sentence():
    environment = {**os.environ, "DATABASE_URL": "postgres://someone:hush@127.0.0.1:1/cube"}
    for name, (status, errors) in told_by_commands(environment).items():
        assert "Traceback" not in errors, name
        assert "hush" not in errors, name
        if name not in _WITHOUT_TABLES:
            assert status == 1, name
            assert "DATABASE_URL" in errors, (name, errors)
            assert "refused" in errors, (name, errors)


def manage(environment, *arguments, given=None):
    return subprocess.run(
        [sys.executable, "manage.py", *arguments],
        cwd=settings.BASE_DIR,
        env=environment,
        input=given,
        stdin=subprocess.DEVNULL if given is None else None,
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_command_of_djangos_says_what_to_do_too(empty):
    done = manage(empty, "changepassword", "nobody")
    assert done.returncode == 1
    assert "manage.py migrate" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_command_of_djangos_without_a_database_says_so():
    url = "postgres://someone:hush@127.0.0.1:1/cube"
    done = manage({**os.environ, "DATABASE_URL": url}, "changepassword", "nobody")
    assert done.returncode == 1
    assert "The database is not available" in done.stderr
    assert "Traceback" not in done.stderr


def test_dbshell_opens_the_embedded_database_and_passes_arguments_on(empty):
    done = manage(empty, "dbshell", "--", "-At", "-c", "SELECT current_database(), 6 * 7")
    assert (done.returncode, done.stdout) == (0, "corecube|42\n"), done.stderr


def test_dbshell_runs_what_is_typed(empty):
    done = manage(empty, "dbshell", given="\\pset tuples_only on\nSELECT 'typed';\n")
    assert "typed" in done.stdout, done.stderr


@pytest.mark.django_db
def test_dbshell_finds_a_running_server(empty):
    embedded_server(settings.CORECUBE_POSTGRES_DIR)
    done = manage({**os.environ, "PATH": "/nowhere"}, "dbshell", "--", "-At", "-c", "SELECT 1")
    assert done.stdout == "1\n", done.stderr


@pytest.mark.django_db
def test_a_migrated_database_is_no_reason_to_say_anything(capsys):
    call_command("quality")
    assert capsys.readouterr().err == ""


def test_output_that_nobody_reads_to_its_end_is_no_error():
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as gone:
        done = subprocess.run(
            [sys.executable, "manage.py", "tunables"],
            cwd=settings.BASE_DIR,
            stdout=gone,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert (done.returncode, done.stderr) == (1, "")
