"""Connections made, checked, changed and deleted over the API."""

import logging

import pytest

from corecube import connections
from corecube.connectors.check import check_source
from corecube.models import ApiKey, AuditEvent, Compartment, Connection
from corecube.secrets import seal, unseal
from retrieval.ingest import tasks
from retrieval.models import Document, SyncItem
from retrieval.models.document import document_id

PATH = "/api/v1/connections"
TOKEN = "zanzibar-4711"


@pytest.fixture(autouse=True)
def no_queue(monkeypatch):
    monkeypatch.setattr(tasks.work, "apply_async", lambda **_: None)


@pytest.fixture
def send(client):
    def request(method, path, body=None, secret=""):
        headers = {"Authorization": f"Bearer {secret}"}
        return getattr(client, method)(f"{PATH}{path}", body or {}, content_type="application/json", headers=headers)

    return request


def wiki(world, **changes):
    return {
        "name": "Wiki",
        "kind": "folder",
        "config": {"path": str(world.root)},
        "compartment": "engineering",
        **changes,
    }


def test_a_connection_is_added_read_changed_and_deleted(world, send, get):
    secret = world.key("alice")
    added = send("post", "", wiki(world, sensitivity="confidential", sync_every_minutes=60), secret)
    assert added.status_code == 201
    assert (added.json()["connection"], added.json()["sensitivity"]) == ("wiki", "confidential")
    assert get(f"{PATH}/wiki", secret).json()["config"] == {"path": str(world.root)}
    change = {"trust": "volatile", "config": {"include": ["*.md"]}}
    changed = send("patch", "/wiki", change, secret).json()
    assert (changed["trust"], changed["sync_every_minutes"]) == ("volatile", 60)
    assert changed["config"] == {"path": str(world.root), "include": ["*.md"]}
    back = send("patch", "/wiki", {"config": {"include": None}, "sync_every_minutes": None}, secret).json()
    assert (back["config"], back["sync_every_minutes"]) == ({"path": str(world.root)}, None)
    assert send("delete", "/wiki", secret=secret).json() == {"documents": 0, "chunks": 0}
    assert get(f"{PATH}/wiki", secret).status_code == 404
    actions = list(AuditEvent.objects.filter(subject="wiki").order_by("at").values_list("action", flat=True))
    assert actions == [f"connection.{verb}" for verb in ("created", "changed", "changed", "deleted")]


def test_deleting_tells_what_went(world, send):
    assert send("delete", "/runbooks", secret=world.key("alice")).json() == {"documents": 2, "chunks": 2}
    assert not Document.objects.filter(connection_id=world.runbooks.pk).exists()


@pytest.mark.parametrize(
    ("method", "path"),
    [("post", ""), ("post", "/check"), ("patch", "/runbooks"), ("delete", "/runbooks"), ("post", "/runbooks/check")],
)
def test_it_is_for_admins_whatever_the_slug(world, send, method, path):
    answers = [
        send(
            method,
            path.replace("runbooks", slug),
            wiki(world) if path == "" else {"kind": "push"} if path == "/check" else {},
            world.key("bob"),
        )
        for slug in ("runbooks", "nowhere")
    ]
    assert {answer.status_code for answer in answers} == {403}
    assert Connection.objects.count() == 3


def test_a_strangers_eyes_see_no_settings(world, get):
    assert get(f"{PATH}/runbooks", world.key("bob")).status_code == 403


def test_a_source_is_checked_and_nothing_stored(world, send):
    secret = world.key("alice")
    good = send("post", "/check", {"kind": "folder", "config": {"path": str(world.root)}}, secret).json()
    assert good == {"ok": True, "capabilities": [{"name": "read", "ok": True, "message": "4 files found."}]}
    bad = send("post", "/runbooks/check", {"config": {"path": "/srv/no/such"}}, secret).json()
    assert bad["ok"] is False
    world.runbooks.refresh_from_db()
    assert world.runbooks.config["path"] != "/srv/no/such"
    assert Connection.objects.count() == 3


def test_a_failed_check_stands_against_it_until_one_saves_anyway(world, send):
    secret = world.key("alice")
    body = wiki(world, config={"path": "/srv/no/such"})
    refused = send("post", "", body, secret)
    assert (refused.status_code, refused.json()["error"]["code"]) == (422, "check_failed")
    assert send("post", "", {**body, "save_anyway": True}, secret).status_code == 201


@pytest.mark.parametrize(
    ("changes", "param"),
    [
        ({"config": {}}, "path"),
        ({"kind": "carrier"}, None),
        ({"kind": "web", "config": {"start": ["https://x.example"], "max_pages": 0}}, "max_pages"),
        ({"kind": "git", "config": {"url": "https://x.example/r", "colour": "blue"}}, "colour"),
        ({"secrets": {"pin": "1234"}}, "pin"),
        ({"compartment": "nowhere"}, "compartment"),
        ({"slug": "runbooks"}, "slug"),
        ({"slug": "new"}, "slug"),
        ({"name": "!!!"}, "slug"),
        ({"half_life_days": 0}, "half_life_days"),
        ({"language": "klingon"}, "language"),
        ({"sensitivity": "cosmic"}, "sensitivity"),
        ({"colour": "blue"}, "colour"),
    ],
)
def test_what_is_wrong_is_named(world, send, changes, param):
    answer = send("post", "", wiki(world, save_anyway=True, **changes), world.key("alice"))
    assert (answer.status_code, answer.json()["error"]["param"]) == (422, param)
    assert Connection.objects.count() == 3


def test_secrets_go_in_and_never_come_out(world, send, get, caplog):
    caplog.set_level(logging.DEBUG)
    secret = world.key("alice")
    body = {"kind": "git", "config": {"url": "http://127.0.0.1:1/r.git"}, "secrets": {"token": TOKEN}}
    answers = [
        send("post", "/check", body, secret),
        send("post", "", {**wiki(world), **body}, secret),
        send("post", "", {**wiki(world), **body, "save_anyway": True}, secret),
        send("post", "", {**wiki(world), **body, "secrets": {"token": [TOKEN]}}, secret),
        get(f"{PATH}/wiki", secret),
        send("post", "/wiki/check", {}, secret),
    ]
    assert [answer.status_code for answer in answers] == [200, 422, 201, 422, 200, 200]
    assert answers[4].json()["secrets"] == {"token": 13}
    assert unseal(Connection.objects.get(slug="wiki").sealed_secrets) == {"token": TOKEN}
    told = caplog.text + str(list(AuditEvent.objects.values())) + "".join(it.content.decode() for it in answers)
    assert TOKEN not in told


def test_secrets_do_not_follow_to_another_host(world, send):
    secret = world.key("alice")
    config = {"url": "https://git.example.invalid/r.git"}
    Connection.objects.filter(pk=world.vault.pk).update(
        kind="git", config=config, sealed_secrets=seal({"token": TOKEN})
    )
    elsewhere = {"config": {"url": "https://evil.example.invalid/r.git"}}
    for path, method in (("/vault/check", "post"), ("/vault", "patch")):
        answer = send(method, path, elsewhere, secret)
        assert (answer.status_code, answer.json()["error"]["param"]) == (422, "token")
    gone = {**elsewhere, "secrets": {"token": ""}, "save_anyway": True}
    assert send("patch", "/vault", gone, secret).json()["secrets"] == {}


def test_a_narrowed_key_makes_and_moves_nothing_beyond_its_narrowing(world, send):
    key, secret = ApiKey.issue(user=world.alice, name="narrow")
    key.compartments.add(Compartment.objects.get(slug="finance"))
    key.max_sensitivity = 1
    key.save()
    assert send("post", "", wiki(world), secret).status_code == 403
    assert send("patch", "/ledger", {"compartment": "engineering"}, secret).status_code == 403
    assert send("patch", "/ledger", {"sensitivity": "restricted"}, secret).status_code == 403
    assert send("patch", "/runbooks", {"trust": "volatile"}, secret).status_code == 404
    assert send("patch", "/ledger", {"trust": "reference"}, secret).status_code == 200


def test_one_item_of_a_job_is_tried_again(world, post):
    sync = world.runbooks.syncs.get()
    for name in ("a", "b"):
        SyncItem.objects.create(
            sync=sync, document_id=document_id(1, name), external_id=name, item={"name": name}, state="failed"
        )
    job = f"/api/v1/jobs/{sync.pk}/retry"
    assert post(job, {"items": ["nowhere"]}, world.key("alice")).status_code == 422
    assert post(job, {"items": ["b"]}, world.key("alice")).json()["seen"] == 1
    assert sync.items.get().external_id == "a"


def test_what_was_changed_while_a_source_is_checked_stays(world, send, monkeypatch):
    def slow(connection, secrets):
        Connection.objects.filter(pk=connection.pk).update(sensitivity=3)
        return check_source(connection, secrets)

    monkeypatch.setattr(connections, "check_source", slow)
    changed = send("patch", "/runbooks", {"config": {"include": ["*.md"]}}, world.key("alice"))
    assert (changed.status_code, changed.json()["sensitivity"]) == (200, "restricted")
    world.runbooks.refresh_from_db()
    assert (world.runbooks.sensitivity, world.runbooks.config["include"]) == (3, ["*.md"])
