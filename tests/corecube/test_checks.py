import subprocess
import sys

import pytest
from django.conf import settings

from corecube.checks import ServerFacts, check_server, server_facts, server_problem
from corecube.embedded.server import embedded_server

GOOD = {"major": 15, "available": "0.8.0", "installed": None, "may_create": True}


def problem(**changes):
    found = server_problem(ServerFacts(**{**GOOD, **changes}))
    return found.id if found else None


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, None),
        ({"installed": "0.8.0"}, None),
        ({"major": 18, "available": "0.10.0", "installed": "0.10.0"}, None),
        ({"major": 14}, "corecube.E002"),
        ({"available": None}, "corecube.E003"),
        ({"available": "0.7.4"}, "corecube.E004"),
        ({"installed": "0.7.4"}, "corecube.E004"),
        ({"available": "0.7.4", "installed": "0.7.4"}, "corecube.E004"),
        ({"may_create": False}, "corecube.E005"),
        ({"may_create": False, "installed": "0.8.0"}, None),
    ],
)
def test_a_server_is_judged_by_what_it_says_of_itself(changes, expected):
    assert problem(**changes) == expected


def test_the_hint_for_an_outdated_extension_is_to_update_it():
    assert "ALTER EXTENSION" in server_problem(ServerFacts(**{**GOOD, "installed": "0.7.4"})).hint


@pytest.mark.django_db
def test_a_real_server_tells_its_facts():
    facts = server_facts("default")
    assert facts.major >= 15
    assert facts.available is not None
    assert facts.installed is not None
    assert facts.may_create is True


def test_the_embedded_server_is_not_asked():
    assert check_server(databases=["default"]) == []


def manage_check(url):
    return subprocess.run(
        [sys.executable, "manage.py", "check", "--database", "default"],
        env={"DATABASE_URL": url, "PATH": ""},
        cwd=settings.BASE_DIR,
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_server_that_cannot_be_reached_is_named_at_once_without_its_password():
    done = manage_check("postgres://someone:hush@127.0.0.1:1/cube")
    assert done.returncode == 1
    assert "corecube.E001" in done.stderr
    assert "127.0.0.1" in done.stderr
    assert "hush" not in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.django_db
def test_a_good_server_behind_database_url_passes():
    server = embedded_server(settings.CORECUBE_POSTGRES_DIR)
    done = manage_check(f"postgres://postgres@{server.socket_dir.replace('/', '%2F')}/postgres")
    assert done.returncode == 0, done.stderr
