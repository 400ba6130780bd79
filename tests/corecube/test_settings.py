import os
import subprocess
import sys

import pytest
from django.core.exceptions import ImproperlyConfigured

from corecube.settings import _database


def database(monkeypatch, url):
    monkeypatch.setenv("DATABASE_URL", url)
    return _database()


def test_options_of_the_url_are_kept_beside_ours(monkeypatch):
    options = database(monkeypatch, "postgres://u:p@host/db?options=-c%20search_path%3Dcube&sslmode=require")["OPTIONS"]
    assert options["options"] == "-c jit=off -c search_path=cube"
    assert options["sslmode"] == "require"


@pytest.mark.parametrize("url", ["", "postgres://u:p@host/db"])
def test_connections_are_checked_before_they_are_used(monkeypatch, url):
    found = database(monkeypatch, url)
    assert found["CONN_HEALTH_CHECKS"] is True
    assert found["OPTIONS"]["options"] == "-c jit=off"


@pytest.mark.parametrize(
    "url", ["foo", "postgres://u:hush@host:abc/db", "postgres://[hush/db", "sqlite:///hush", "mysql://u:hush@host/db"]
)
def test_an_address_that_is_no_postgresql_server_is_refused_without_being_repeated(monkeypatch, url):
    with pytest.raises(ImproperlyConfigured, match="DATABASE_URL must read like") as caught:
        database(monkeypatch, url)
    assert "hush" not in str(caught.value)
    assert caught.value.__cause__ is None


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("DATABASE_URL", "foo"),
        ("CORECUBE_LOG_LEVEL", "verbose"),
        ("CORECUBE_TEXT_SEARCH_CONFIG", "no'name"),
        ("CORECUBE_LLM_URL", "junk"),
    ],
)
def test_a_bad_setting_stops_the_start_with_one_sentence(name, value):
    finished = subprocess.run(
        [sys.executable, "manage.py", "check"],
        env={**os.environ, name: value},
        capture_output=True,
        text=True,
        check=False,
    )
    assert finished.returncode == 1
    assert finished.stderr.startswith(f"{name} must ")
    assert finished.stderr.count("\n") == 1
