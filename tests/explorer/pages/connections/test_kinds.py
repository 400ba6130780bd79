"""A connection of every kind, made in the console against a source that is really there."""

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from urllib.parse import urlsplit

import pytest
from dulwich.repo import Repo

from corecube.connectors.kinds import KINDS
from corecube.models import Connection
from corecube.secrets import unseal
from retrieval.ingest import tasks

LISTING = b"""<?xml version="1.0"?><ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Name>documents</Name>
<KeyCount>1</KeyCount><IsTruncated>false</IsTruncated><Contents><Key>a.md</Key><Size>3</Size>
<LastModified>2026-01-01T00:00:00.000Z</LastModified><ETag>"1"</ETag></Contents></ListBucketResult>"""
CONFLUENCE = {
    "/wiki/rest/api/user/current": {"type": "known", "username": "me"},
    "/wiki/rest/api/space/ENG": {"key": "ENG"},
    "/wiki/rest/api/content/search": {"results": [], "_links": {}},
}


class Everything(BaseHTTPRequestHandler):
    """A site with one page, a Confluence with an empty space, a bucket with one object."""

    def answer(self):
        path = urlsplit(self.path).path
        if path == "/":
            return 200, "text/html", b"<title>Start</title><p>Welcome.</p>"
        if path == "/documents":
            return 200, "application/xml", LISTING
        if path == "/documents/a.md":
            return 200, "text/markdown", b"# A"
        if path in CONFLUENCE and self.headers.get("Authorization") == "Bearer hush-hush":
            return 200, "application/json", json.dumps(CONFLUENCE[path]).encode()
        return (401 if path in CONFLUENCE else 404), "text/plain", b""

    def do_GET(self):
        status, kind, body = self.answer()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    def do_HEAD(self):
        self.do_GET()

    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def server():
    with ThreadingHTTPServer(("127.0.0.1", 0), Everything) as running:
        Thread(target=running.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        yield f"http://127.0.0.1:{running.server_port}"
        running.shutdown()


@pytest.fixture
def sources(server, tmp_path):
    """The form values of each kind. A new kind needs an entry."""
    with Repo.init(str(tmp_path / "origin"), mkdir=True) as repo:
        (tmp_path / "origin" / "a.md").write_text("# A")
        tree = repo.get_worktree()
        tree.stage(["a.md"])
        tree.commit(b"one", committer=b"A <a@example.org>", author=b"A <a@example.org>")
    return {
        "folder": {"config_path": str(tmp_path)},
        "upload": {},
        "git": {
            "config_url": (tmp_path / "origin").as_uri(),
            "config_max_repository_bytes": "1",
            "config_timeout_seconds": "10",
        },
        "web": {"config_start": f"{server}/", "config_private_networks": "127.0.0.0/8"},
        "s3": {
            "config_bucket": "documents",
            "config_endpoint": server,
            "config_addressing": "path",
            "secret_access_key": "AKIA",
            "secret_secret_key": "hush-hush",
        },
        "confluence": {
            "config_url": f"{server}/wiki",
            "config_spaces": "ENG",
            "config_edition": "data_center",
            "secret_token": "hush-hush",
        },
        "push": {},
    }


@pytest.fixture
def send(browse, world, sources, monkeypatch):
    monkeypatch.setattr(tasks.work, "apply_async", lambda **_: None)
    alice = browse("alice")

    def post(kind, **changes):
        values = {
            "name": f"My {kind}",
            "compartment": world.runbooks.compartment.pk,
            "sensitivity": 1,
            "trust": 2,
            "half_life_days": 180,
            "freshness_basis": "synced",
            "chunk_profile": "default",
            **sources[kind],
        }
        return alice.post(f"/connections/new/{kind}/", {**values, **changes})

    return post


@pytest.mark.parametrize("kind", KINDS)
def test_a_source_that_is_there_passes_and_is_stored(send, sources, kind):
    check = send(kind, do="check")
    assert {state for _, state, _ in check.context["check"]} == {"passed"}
    assert send(kind).headers["Location"] == f"/connections/my-{kind}/first-sync/"
    stored = Connection.objects.get(slug=f"my-{kind}")
    assert stored.kind == kind
    assert set(unseal(stored.sealed_secrets)) == {
        name.removeprefix("secret_") for name in sources[kind] if name.startswith("secret_")
    }


@pytest.mark.parametrize(
    ("kind", "changes", "failed"),
    [
        ("confluence", {"secret_token": "wrong"}, "Sign in"),
        ("s3", {"config_bucket": "elsewhere"}, "List contents"),
        ("web", {"config_private_networks": ""}, "Reach the source"),
        ("git", {"config_branch": "no-such-branch"}, "List contents"),
    ],
)
def test_what_is_missing_is_named_and_nothing_is_stored(send, kind, changes, failed):
    page = send(kind, **changes)
    assert page.status_code == 422
    assert [label for label, state, _ in page.context["check"] if state == "failed"] == [failed]
    assert not Connection.objects.filter(slug=f"my-{kind}").exists()
    assert "hush-hush" not in page.content.decode()
