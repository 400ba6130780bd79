"""Real HTTP servers for connectors to speak to, each in a thread of its own."""

from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest


@dataclass
class Site:
    """A site whose pages a test sets: a path stands for (status, headers, body), or for a function that gives it.

    A body may be an iterable of blocks, sent one by one. Every request is kept as (path, headers).
    """

    pages: dict = field(default_factory=dict)
    requests: list = field(default_factory=list)
    port: int = 0

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def add(self, path, body=b"", status=200, **headers):
        content = body.encode() if isinstance(body, str) else body
        self.pages[path] = (status, {name.replace("_", "-"): value for name, value in headers.items()}, content)

    def asked(self):
        """Return the paths that were asked for since the last call."""
        paths = [path for path, _ in self.requests]
        self.requests.clear()
        return paths

    def answer(self, path, headers):
        page = self.pages.get(path, self.pages.get(path.partition("?")[0], (404, {}, b"nothing here")))
        return page(path, headers) if callable(page) else page


def handler_of(site):
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        # Head and body leave together: apart, the second would wait for the first to be acknowledged.
        wbufsize = 1 << 16

        def do_GET(self):
            site.requests.append((self.path, dict(self.headers)))
            status, headers, body = site.answer(self.path, self.headers)
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            if isinstance(body, bytes):
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)
                return
            self.send_header("Connection", "close")
            self.end_headers()
            try:
                for block in body:
                    self.wfile.write(block)
                    self.wfile.flush()
            except OSError:
                self.close_connection = True

        def log_message(self, *_):
            pass

    return Handler


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_):
        """Say nothing: a client that hangs up is what many tests are about."""


@pytest.fixture
def serve():
    """Return a function that starts a site; `host` is the address it listens on."""
    servers = []

    def start(host="127.0.0.1", wrap=None):
        site = Site()
        server = Server((host, 0), handler_of(site))
        if wrap:
            server.socket = wrap(server.socket)
        site.port = server.server_port
        Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        servers.append(server)
        return site

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.fixture
def site(serve):
    return serve()
