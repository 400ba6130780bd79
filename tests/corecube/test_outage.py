"""What people and programs see while the database does not answer, in a process whose database is not there."""

import json
import os
import subprocess
import sys

import pytest
from django.db import OperationalError, connection

from corecube.api import is_outage

_SCRIPT = """
import json, sys
import django
django.setup()
from django.test import Client
told = []
for path, headers in json.loads(sys.argv[1]):
    response = Client(headers={"host": "localhost", **headers}).get(path)
    told.append([response.status_code, response.headers.get("Retry-After"), response.content.decode()])
print(json.dumps(told))
"""
_PROGRAM = ["/v1/models", {"Authorization": "Bearer cc_any"}]
_PERSON = ["/", {"Cookie": "sessionid=" + "a" * 32}]


@pytest.fixture(scope="module")
def told():
    """Return status, Retry-After and body of both requests to an installation whose database is stopped."""
    environment = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "corecube.settings",
        "DATABASE_URL": "postgres://nobody:secret-word@127.0.0.1:1/corecube",
        "CORECUBE_LOG_LEVEL": "CRITICAL",
    }
    finished = subprocess.run(
        [sys.executable, "-c", _SCRIPT, json.dumps([_PROGRAM, _PERSON])],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(finished.stdout.splitlines()[-1])


def test_a_program_gets_503_and_when_to_try_again(told):
    status, retry_after, body = told[0]
    assert (status, retry_after) == (503, "5")
    assert json.loads(body)["error"]["code"] == "database_unavailable"
    assert "secret-word" not in body


def test_a_person_gets_a_page_that_says_so(told):
    status, _, body = told[1]
    assert status == 503
    assert "The database is not available" in body
    assert "secret-word" not in body


@pytest.mark.django_db
def test_a_statement_whose_time_was_up_is_no_outage():
    with pytest.raises(OperationalError) as ended, connection.cursor() as cursor:
        cursor.execute("SET LOCAL statement_timeout = '5ms'; SELECT pg_sleep(1)")
    error = RuntimeError("A stage failed.")
    error.__cause__ = ended.value
    assert not is_outage(error)
    error.__cause__ = OperationalError("The server closed the connection.")
    assert is_outage(error)
