"""Streaming answers at once from a web server of its own, on a scratch database."""

import asyncio
import json
import socketserver
import threading
from io import StringIO

import pytest
from django.conf import settings as installed
from django.core.management import CommandError, call_command
from django.db import connection

from retrieval.encoders import load_encoder
from retrieval.evaluation.bench.chat import ChatPoint, ChatReport, read_all
from retrieval.evaluation.bench.web_server import WebServer, web_server
from retrieval.index import active
from retrieval.models import Document, SearchRecord

MODEL = installed.CORECUBE_MODELS_DIR / installed.CORECUBE_MODEL
COMPANY = """
[[compartment]]
slug = "all"
name = "All"
description = "Everything."

[[connection]]
slug = "notes"
name = "Notes"
kind = "folder"
path = "notes"
compartment = "all"
sensitivity = "internal"
trust = "reference"
source_type = "text"
half_life_days = 180
freshness_basis = "synced"

[[question]]
text = "How long does draining the queue take?"

[[question]]
text = "What does error Q-4711 mean?"
"""


class Script(socketserver.ThreadingTCPServer):
    """Answers each request with the next of its answers."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, *answers):
        super().__init__(("127.0.0.1", 0), Page)
        self.answers = list(answers)


class Page(socketserver.StreamRequestHandler):
    def handle(self):
        while (line := self.rfile.readline().strip().lower()) or not line:
            if line.startswith(b"content-length"):
                length = int(line.split(b":")[1])
            if not line:
                break
        self.rfile.read(length)
        status, events = self.server.answers.pop(0)
        self.wfile.write(f"HTTP/1.1 {status}\r\nConnection: close\r\n\r\n{''.join(events)}".encode())


def event(data):
    return f"data: {json.dumps(data)}\n\n"


def word(text):
    return event({"choices": [{"delta": {"content": text}}]})


def read(*answers):
    """Return how one reader reads these answers, and how often it said that one is done."""
    done = []
    with Script(*answers) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_address[1]}"
        work = read_all(url, "secret", ["Why?"], count=len(answers), at_once=1, done=lambda: done.append(1))
        readings = asyncio.run(work)
        server.shutdown()
    return readings, len(done)


def test_an_answer_is_read_to_its_end_and_its_first_word_timed():
    finish = event({"choices": [{"delta": {}}], "corecube": {"degraded": ["rerank_failed"]}})
    events = [word(""), ": keep-alive\n\n", word("Four "), word("minutes"), finish, "data: [DONE]\n\n"]
    (reading,), done = read(("200 OK", events))
    assert (reading.error, reading.degraded, done) == ("", ("rerank_failed",), 1)
    assert 0 < reading.first_ms <= reading.total_ms


def test_every_way_of_failing_is_told():
    error = event({"error": {"code": "answer_failed"}})
    readings, done = read(("503 Busy", []), ("200 OK", [word("Four "), error]), ("200 OK", [word("Four ")]))
    assert [reading.error for reading in readings] == ["status 503", "answer_failed", "cut off"]
    assert done == 3


def test_nobody_at_the_address_is_an_error_and_no_failure():
    work = read_all("http://127.0.0.1:9", "secret", ["Why?"], count=2, at_once=2, done=lambda: None)
    assert [reading.error for reading in asyncio.run(work)] == ["ConnectError"] * 2


def test_growth_counts_from_the_first_fifth_on():
    points = tuple(ChatPoint(done, rss, 4) for done, rss in [(10, 50), (20, 100), (50, 104), (100, 103)])
    assert ChatReport((), points, 1, 0).grown_bytes == 3


def test_a_process_that_is_gone_uses_nothing():
    assert WebServer("http://x", 2**22 + 1).figures().rss_bytes == 0


@pytest.mark.parametrize("options", [("--chat=10", "--streams=20"), ("--chat=10", "--streams=0")])
def test_numbers_out_of_range_are_refused(options):
    with pytest.raises(CommandError, match="must be between"):
        call_command("bench", *options)


@pytest.fixture
def small_company(settings, monkeypatch, tmp_path):
    """Let the sample company be one document, read with the model that the web server will read with."""
    encoder = load_encoder(MODEL)
    monkeypatch.setattr(active, "encoder", lambda *_: encoder)
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "queues.txt").write_text("Draining the queue takes four minutes. Q-4711: a stuck worker.")
    (tmp_path / "company.toml").write_text("user = []\ngroup = []\ngrant = []\n" + COMPANY)
    settings.CORECUBE_SAMPLES_DIR = tmp_path


@pytest.mark.skipif(not (MODEL / "manifest.json").is_file(), reason="the model is not on this machine")
@pytest.mark.usefixtures("migrated_scratch", "small_company")
def test_answers_are_streamed_and_the_installation_is_left_alone():
    application, output = connection.settings_dict["NAME"], StringIO()
    call_command("bench", "--chat=10", "--streams=5", "--json", stdout=output)
    report = json.loads(output.getvalue())
    assert [(it["name"], it["streams"], it["answers"], it["errors"]) for it in report["phases"]] == [
        ("alone", 1, 10, {}),
        ("crowd", 5, 10, {}),
    ]
    assert all(it[name]["p50"] > 0 for it in report["phases"] for name in ("joining_ms", "first_ms", "total_ms"))
    assert [point["answers"] for point in report["points"]] == list(range(1, 11))
    assert report["connections_in_use"] == 0
    assert connection.settings_dict["NAME"] == application
    assert not Document.objects.exists()
    assert not SearchRecord.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_the_server_ends_with_its_block():
    with web_server() as server:
        assert server.figures().threads > 0
    assert server.figures().threads == 0
