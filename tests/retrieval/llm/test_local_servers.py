"""Servers of language models on this machine."""

import http.server
import json
import threading
import time
from contextlib import contextmanager, suppress

import pytest

from retrieval.llm import local_servers as module
from retrieval.llm.local_servers import local_servers


@contextmanager
def serving(body, *, status=200, headers=(), seconds=0.0):
    """Serve one body at every address, and yield the port and the requested paths."""
    paths = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            paths.append(self.path)
            time.sleep(seconds)
            self.send_response(status)
            for name, value in headers:
                self.send_header(name, value)
            # A client that has given up reads nothing.
            with suppress(ConnectionError):
                self.end_headers()
                self.wfile.write(body)

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield server.server_address[1], paths
        finally:
            server.shutdown()
            thread.join()


def listed(*names, owner="library"):
    return json.dumps({"data": [{"id": name, "owned_by": owner} for name in names]}).encode()


def found(port):
    return [(it.preset.slug, it.base_url, it.models) for it in local_servers(ports=[port])]


@pytest.mark.parametrize(
    ("owner", "slug"), [("library", "ollama"), ("llamacpp", "llamacpp"), ("vllm", "vllm"), ("somebody", "llamacpp")]
)
def test_a_server_is_known_by_the_owner_of_its_models(owner, slug):
    with serving(listed("b", "a", owner=owner)) as (port, paths):
        assert found(port) == [(slug, f"http://127.0.0.1:{port}/v1", ("a", "b"))]
    assert paths == ["/v1/models"]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>",
        b"[1]",
        b'{"data": 1}',
        b'{"data": [{"id": 3}, 4]}',
        listed(),
        listed("corecube", owner="corecube"),
    ],
)
def test_what_is_no_list_of_models_is_no_server(body):
    with serving(body) as (port, _):
        assert found(port) == []


def test_an_error_a_redirect_and_a_long_body_are_no_server():
    with serving(listed("a"), status=401) as (port, _):
        assert found(port) == []
    with serving(listed("a")) as (target, paths):
        with serving(b"", status=302, headers=[("Location", f"http://127.0.0.1:{target}/v1/models")]) as (port, _):
            assert found(port) == []
        assert paths == []
    with serving(listed("a" * 2**20)) as (port, _):
        assert found(port) == []


def test_a_silent_server_is_waited_for_briefly():
    with serving(listed("a"), seconds=1.0) as (port, _):
        started = time.monotonic()
        assert found(port) == []
        assert time.monotonic() - started < 1.0


def test_a_closed_port_and_the_own_port_are_left_out():
    with serving(listed("a")) as (port, paths):
        assert local_servers(own_ports=[port], ports=[port]) == ()
        assert paths == []
    assert found(port) == []


def test_where_corecube_listens_only_vllm_counts(monkeypatch):
    for owner, count in (("library", 0), ("vllm", 1)):
        with serving(listed("a", owner=owner)) as (port, _):
            monkeypatch.setattr(module, "_SHARED", {port})
            monkeypatch.setattr(module, "_PORTS", {port: "vllm"})
            assert len(found(port)) == count


def test_only_the_loopback_address_is_asked():
    assert module._HOST == "127.0.0.1"
    assert set(module._PORTS) == {11434, 8080, 8000, 8001}
