"""What a program may let connections read: never more than its key opens."""

import time

import jwt
import pytest

from corecube.keys import USER_HEADER, allow_forwarding
from corecube.models import ApiKey, AuditEvent, Connection
from corecube.scope import Sensitivity
from corecube.secrets import seal, unseal
from retrieval.ingest import tasks
from retrieval.ingest.sync import sync_connection
from retrieval.models import Document, Sync

PATH = "/api/v1/connections"


@pytest.fixture(autouse=True)
def no_queue(monkeypatch):
    monkeypatch.setattr(tasks.work, "apply_async", lambda **_: None)


@pytest.fixture
def secret_file(settings, tmp_path):
    """A file of the installation's own data."""
    settings.CORECUBE_VAR_DIR = tmp_path / "var"
    settings.CORECUBE_VAR_DIR.mkdir()
    (settings.CORECUBE_VAR_DIR / "secret_key").write_text("zanzibar")
    return settings.CORECUBE_VAR_DIR / "secret_key"


@pytest.fixture
def ask(client, world):
    """Return a function that asks with a key of Alice's: whole, narrowed in a way, or acting for another admin."""

    def send(kind, method, path="", body=None):
        key, secret = ApiKey.issue(user=world.alice, name=kind)
        headers = {"Authorization": f"Bearer {secret}"}
        if kind == "compartments":
            key.compartments.add(world.runbooks.compartment)
        elif kind == "sensitivity":
            ApiKey.objects.filter(pk=key.pk).update(max_sensitivity=Sensitivity.INTERNAL)
        elif kind == "presets":
            ApiKey.objects.filter(pk=key.pk).update(presets=["corecube"])
        elif kind == "forwarded":
            type(world.bob).objects.filter(pk=world.bob.pk).update(is_staff=True)
            now = int(time.time())
            claims = {"sub": "bob", "aud": "corecube", "iat": now, "exp": now + 60}
            headers[USER_HEADER] = jwt.encode(claims, allow_forwarding(key, actor=world.alice), algorithm="HS256")
        return getattr(client, method)(f"{PATH}{path}", body or {}, content_type="application/json", headers=headers)

    return send


def body(**changes):
    return {"name": "Wiki", "kind": "folder", "compartment": "engineering", "sensitivity": "public", **changes}


NARROWED = ["compartments", "sensitivity", "presets", "forwarded"]
LOCAL = [
    ("folder", lambda root: {"path": str(root)}),
    ("git", lambda root: {"url": root.as_uri()}),
    ("git", lambda root: {"url": f"FILE://{root}"}),
    ("git", lambda root: {"url": f"file:{root}"}),
]


@pytest.mark.parametrize("key", NARROWED)
@pytest.mark.parametrize(("kind", "config"), LOCAL)
@pytest.mark.parametrize("anyway", [True, False])
def test_a_narrowed_key_makes_no_connection_that_reads_this_machine(ask, world, key, kind, config, anyway):
    answer = ask(key, "post", "", body(kind=kind, config=config(world.root / "vault"), save_anyway=anyway))
    assert (answer.status_code, "narrowed" in answer.json()["error"]["message"]) == (403, True)
    assert Connection.objects.count() == 3


@pytest.mark.parametrize("key", NARROWED)
@pytest.mark.parametrize(("kind", "config"), LOCAL)
def test_a_narrowed_key_learns_nothing_of_this_machine_by_a_check(ask, world, key, kind, config):
    said = {
        (answer.status_code, answer.content)
        for root in (world.root / "vault", world.root / "missing")
        for answer in [ask(key, "post", "/check", {"kind": kind, "config": config(root)})]
    }
    assert {status for status, _ in said} == {403}
    assert len(said) == 1


@pytest.mark.parametrize("key", NARROWED)
@pytest.mark.parametrize("change", [{"path": "vault"}, {"path": None}, {"exclude": ["*.txt"]}, {"max_bytes": 9}])
def test_a_narrowed_key_points_none_elsewhere(ask, world, key, change):
    if change.get("path"):
        change = {"path": str(world.root / change["path"])}
    for method, path in (("patch", "/runbooks"), ("post", "/runbooks/check")):
        answer = ask(key, method, path, {"config": change, **({"save_anyway": True} if method == "patch" else {})})
        assert answer.status_code == 403
    world.runbooks.refresh_from_db()
    assert world.runbooks.config == {"path": str(world.root / "runbooks")}


@pytest.mark.parametrize("key", NARROWED)
def test_a_narrowed_key_manages_the_rest_of_one_within_its_narrowing(ask, world, key):
    same = {"config": {"path": str(world.root / "runbooks")}, "trust": "volatile"}
    assert ask(key, "patch", "/runbooks", same).json()["trust"] == "volatile"
    assert ask(key, "post", "/runbooks/check").json()["ok"] is True
    assert ask(key, "post", "/runbooks/sync").status_code == 202
    assert ask(key, "post", "", body(kind="push")).status_code == 201


@pytest.mark.parametrize("key", NARROWED)
def test_a_narrowed_key_points_no_stored_secret_at_another_source(ask, world, key):
    stored = {"url": "http://127.0.0.1:1/team/open.git"}
    source = Connection.objects.create(
        slug="code",
        name="Code",
        kind="git",
        config=stored,
        compartment=world.runbooks.compartment,
        sealed_secrets=seal({"token": "t"}),
    )
    change = {"config": {"url": "http://127.0.0.1:1/team/closed.git"}, "save_anyway": True}
    assert ask(key, "patch", "/code", change).status_code == 403
    assert ask(key, "post", "/code/check", {"config": change["config"]}).status_code == 403
    source.refresh_from_db()
    assert source.config == stored
    assert ask(key, "patch", "/code", {**change, "secrets": {"token": "mine"}}).status_code == 200
    source.refresh_from_db()
    assert (source.config, unseal(source.sealed_secrets)) == (change["config"], {"token": "mine"})


def test_a_whole_key_makes_one_below_a_root_and_none_elsewhere(ask, world, secret_file, tmp_path):
    assert ask("whole", "post", "", body(config={"path": str(world.root / "vault")})).status_code == 201
    said = set()
    (tmp_path / "link").symlink_to(secret_file)
    for path in (secret_file, secret_file.parent, secret_file / "missing", tmp_path / "link", "/etc/passwd", "/opt/x"):
        for sent in ({"save_anyway": True}, {}):
            refused = ask("whole", "post", "", body(name="Key", config={"path": str(path)}, **sent))
            assert (refused.status_code, refused.json()["error"]["param"]) == (422, "path")
            said.add(refused.json()["error"]["message"])
        said.add(ask("whole", "post", "/check", body_of_check(path)).json()["error"]["message"])
        said.add(ask("whole", "patch", "/wiki", {"config": {"path": str(path)}}).json()["error"]["message"])
    assert len(said) == 1
    assert "CORECUBE_FOLDER_ROOTS" in said.pop()
    assert Connection.objects.get(slug="wiki").config == {"path": str(world.root / "vault")}


def body_of_check(path):
    return {"kind": "folder", "config": {"path": str(path)}}


def test_a_repository_on_this_machine_lies_below_a_root_too(ask, secret_file):
    for url in ("file:///etc", secret_file.parent.as_uri(), "file:///opt/nothing"):
        refused = ask("whole", "post", "", body(kind="git", config={"url": url}, save_anyway=True))
        assert (refused.status_code, refused.json()["error"]["param"]) == (422, "url")
        assert "CORECUBE_FOLDER_ROOTS" in refused.json()["error"]["message"]


@pytest.mark.parametrize(
    ("kind", "config"),
    [
        ("git", {"url": "/srv/repository"}),
        ("git", {"url": "ext::sh -c date"}),
        ("git", {"url": "file://localhost/srv/repository"}),
        ("web", {"start": ["file:///etc/passwd"]}),
        ("web", {"start": ["https://example.org"], "sitemaps": ["file:///etc/passwd"]}),
        ("s3", {"bucket": "bucket", "endpoint": "file:///etc"}),
        ("confluence", {"url": "file:///etc", "spaces": ["A"]}),
    ],
)
def test_no_other_kind_reads_files(ask, kind, config):
    assert ask("whole", "post", "", body(kind=kind, config=config, save_anyway=True)).status_code == 422


def test_a_connection_stored_before_reads_nothing_of_the_installation_any_more(ask, world, secret_file):
    """Its sync fails with a sentence; the check says the same."""
    source = Connection.objects.create(
        slug="leak",
        name="Leak",
        kind="folder",
        config={"path": str(secret_file.parent)},
        compartment=world.runbooks.compartment,
    )
    with pytest.raises(Exception, match="CORECUBE_FOLDER_ROOTS"):
        sync_connection(source)
    assert "CORECUBE_FOLDER_ROOTS" in Sync.objects.get(connection=source).message
    assert not Document.objects.filter(connection=source).exists()
    assert ask("whole", "post", "/leak/check").status_code == 422


def test_what_was_refused_leaves_no_audit_event_of_a_change(ask, world):
    ask("compartments", "post", "", body(config={"path": str(world.root)}, save_anyway=True))
    assert not AuditEvent.objects.filter(action="connection.created").exists()
