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
    url = "postgres://u:p@host/db?options=-c%20search_path%3Dcube&sslmode=require&tcp_user_timeout=500"
    options = database(monkeypatch, url)["OPTIONS"]
    assert options["options"] == "-c search_path=cube"
    assert options["sslmode"] == "require"
    assert str(options["tcp_user_timeout"]) == "500"
    assert options["connect_timeout"] == 5


def test_nothing_that_a_pooler_refuses_is_sent_with_the_start_of_a_connection(monkeypatch):
    assert "options" not in database(monkeypatch, "postgres://u:p@host/db")["OPTIONS"]


@pytest.mark.parametrize(
    "url", ["foo", "postgres://u:hush@host:abc/db", "postgres://[hush/db", "sqlite:///hush", "mysql://u:hush@host/db"]
)
def test_an_address_that_is_no_postgresql_server_is_refused_without_being_repeated(monkeypatch, url):
    with pytest.raises(ImproperlyConfigured, match="DATABASE_URL must have the form") as caught:
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
