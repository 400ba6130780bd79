"""A language model behind real HTTP, whose answers the test decides."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from corecube.models import Connection
from tests.kept_rows import same_row

PAGES = {
    "pump.md": (
        "# Pump seven\n\n## Pressure\n\nIt runs at forty bar and is serviced every march by the people of the "
        "night shift. They log what they found.\n\n## Spares\n\nThe seal has the number Q-4711 and "
        "lies in the cabinet at the door, next to the gloves and to the lamps that nobody uses any more.\n"
    ),
    "valve.md": (
        "# Valve three\n\nIt has to be closed before the pump is opened, and stays closed until the pressure is "
        "below two bar, which takes about four minutes on a warm day.\n"
    ),
}


class FakeModel:
    """Answers each request with what `reply` makes of its body: a text, or a status and headers."""

    def __init__(self):
        self.requests = []
        self.headers = []
        self.at_once = self.max_at_once = 0
        self.reply = lambda _: "The chunk speaks of the works in hall seven."
        self._lock = threading.Lock()

    def take(self, headers, body):
        with self._lock:
            self.requests.append(body)
            self.headers.append(headers)
            self.at_once += 1
            self.max_at_once = max(self.max_at_once, self.at_once)
        try:
            return self.reply(body)
        finally:
            with self._lock:
                self.at_once -= 1

    @property
    def told(self):
        """What the model was told of each chunk."""
        return [json.loads(body["messages"][1]["content"]) for body in self.requests]


@pytest.fixture
def model(settings):
    fake = FakeModel()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            reply = fake.take({name.lower(): value for name, value in self.headers.items()}, body)
            status, headers, content = (200, {}, _completion(reply)) if isinstance(reply, str) else reply
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(content))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    settings.CORECUBE_ENRICH_URL = f"http://127.0.0.1:{server.server_port}/v1/chat/completions"
    settings.CORECUBE_ENRICH_MODEL = "small-writer"
    settings.CORECUBE_ENRICH_API_KEY = "hush-key"
    yield fake
    server.shutdown()
    server.server_close()
    thread.join()


def _completion(text):
    return json.dumps({"choices": [{"message": {"role": "assistant", "content": text}}]}).encode()


@pytest.fixture
def works(world, sync_once, tmp_path):
    """Return a synced connection of two documents that requests context lines."""
    folder = tmp_path / "works"
    folder.mkdir()
    for name, text in PAGES.items():
        (folder / name).write_text(text)
    connection = same_row(
        Connection.objects,
        "works",
        slug="works",
        name="Works",
        kind="folder",
        config={"path": str(folder)},
        compartment=world.runbooks.compartment,
        enrichment="context",
    )
    sync_once(connection)
    return connection
