import asyncio
import json
import logging
import os
import subprocess
import sys

import pytest
from django.conf import settings

from corecube import logs
from corecube.celery import app, mark_lines, unmark_lines
from corecube.logs import JsonFormatter, LineFormatter, last_lines, open_log, request_id


def test_a_new_process_appends_to_the_log(tmp_path):
    path = tmp_path / "log" / "web.log"
    for line in (b"one\n", b"two\n"):
        with open_log(path) as log:
            log.write(line)
    assert path.read_bytes() == b"one\ntwo\n"


def test_a_log_that_has_grown_is_moved_aside(tmp_path, monkeypatch):
    monkeypatch.setattr(logs, "_MAX_BYTES", 3)
    path = tmp_path / "web.log"
    path.write_bytes(b"long\n")
    open_log(path).close()
    assert path.read_bytes() == b""
    assert path.with_name("web.log.1").read_bytes() == b"long\n"


def test_the_last_lines_survive_bytes_that_are_no_text(tmp_path):
    path = tmp_path / "web.log"
    path.write_bytes(b"one\n\xff\nthree\n")
    assert last_lines(path, 2) == ["\N{REPLACEMENT CHARACTER}", "three"]


@pytest.fixture
def requested():
    """Write lines as a request causes them."""
    token = logs.origin.set({"request_id": "a1b2c3d4"})
    yield
    logs.origin.reset(token)


def record(message, *values, **fields):
    return logging.LogRecord("retrieval.search", logging.INFO, "", 1, message, values, **{"exc_info": None} | fields)


def test_a_line_of_json_has_what_a_line_of_text_has_and_the_request(requested):
    line = json.loads(JsonFormatter().format(record('search.done hits=%d "quoted"\nnext line', 3)))
    assert line.pop("time").endswith("+00:00")
    assert line == {
        "level": "INFO",
        "logger": "retrieval.search",
        "message": 'search.done hits=3 "quoted"\nnext line',
        "request_id": "a1b2c3d4",
    }


def test_a_failure_is_one_line_of_json_with_its_traceback():
    try:
        int("no such thing")
    except ValueError:
        text = JsonFormatter().format(record("api.failed", exc_info=sys.exc_info()))
    assert "\n" not in text
    assert json.loads(text)["traceback"].endswith("'no such thing'")


def test_a_line_of_text_names_the_request_once(requested):
    lines = LineFormatter("{message}", style="{")
    assert lines.format(record("search.done hits=3")) == "search.done hits=3 request_id=a1b2c3d4"
    assert lines.format(record("api.failed id=a1b2c3d4")) == "api.failed id=a1b2c3d4"


@pytest.mark.parametrize("proposed", ["0f8fad5b-d9cb-469f-a165-70867728950e", "a1b2c3d4"])
def test_an_id_of_a_trusted_proxy_is_taken(proposed):
    assert request_id(proposed) == proposed


@pytest.mark.parametrize(
    "proposed", ["", "short", "a" * 65, "a1b2c3d4\nsearch.done", "a1b2c3d4 x", "\N{ARABIC-INDIC DIGIT ONE}" * 8]
)
def test_anything_else_is_replaced_by_a_new_one(proposed):
    made = request_id(proposed)
    assert made != proposed
    assert len(made) == 32


@pytest.mark.parametrize(("trusted", "is_taken"), [(["127.0.0.1"], True), (["10.0.0.0/8"], False), ([], False)])
def test_only_a_trusted_proxy_names_a_request(trusted, is_taken):
    from corecube.asgi import TrustedProxies

    seen = {}

    async def application(scope, receive, send):
        seen.update(scope, origin=logs.origin.get())

    headers = [(b"x-request-id", b"a1b2c3d4")]
    scope = {"type": "http", "method": "GET", "client": ("127.0.0.1", 9), "scheme": "http", "headers": headers}
    asyncio.run(TrustedProxies(application, trusted)(scope, None, None))
    assert (seen["request_id"] == "a1b2c3d4") is is_taken
    assert seen["origin"] == {"request_id": seen["request_id"]}


def test_lines_of_a_task_have_its_id_until_it_ends():
    seen = []

    @app.task(name="tests.line", lazy=False)
    def task():
        seen.append(logs.origin.get())

    mark_lines(task_id="t1", task=task)
    task()
    unmark_lines()
    task()
    assert seen == [{"task_id": "t1"}, {}]


def test_a_process_with_the_setting_writes_json(tmp_path):
    script = "import django; django.setup(); import logging; logging.getLogger('uvicorn.error').error('one %s', 'two')"
    variables = {"CORECUBE_LOG_FORMAT": "json", "DJANGO_SETTINGS_MODULE": "corecube.settings"}
    environment = {**os.environ, "CORECUBE_VAR_DIR": str(tmp_path), **variables}
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, cwd=settings.BASE_DIR, env=environment, capture_output=True, text=True, check=True)
    (line,) = done.stderr.splitlines()
    assert json.loads(line)["message"] == "one two"
