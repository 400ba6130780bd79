"""Connections, uploads and syncs."""

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from corecube.connectors.setup import upload_folder
from corecube.models import ApiKey, AuditEvent, Compartment, Connection
from retrieval.ingest import services
from retrieval.models import Sync

LIST = "/api/v1/connections"


@pytest.fixture
def inbox(world):
    return Connection.objects.create(
        slug="inbox", name="Inbox", kind="upload", compartment=Compartment.objects.get(slug="finance")
    )


@pytest.fixture
def upload(client):
    def send(slug, secret, *names, content=b"# Notes\n\nHello."):
        files = [SimpleUploadedFile(name, content) for name in names]
        return client.post(f"{LIST}/{slug}/uploads", {"files": files}, headers={"Authorization": f"Bearer {secret}"})

    return send


@pytest.mark.parametrize(
    ("name", "slugs"), [("alice", ["ledger", "runbooks", "vault"]), ("bob", ["runbooks"]), ("charlie", [])]
)
def test_each_sees_their_own(world, get, name, slugs):
    listed = get(LIST, world.key(name)).json()["connections"]
    assert [connection["connection"] for connection in listed] == slugs


def test_an_upload_is_kept_and_a_sync_queued(world, inbox, upload):
    response = upload("inbox", world.key("alice"), "notes.md", "more.md")
    assert response.status_code == 202
    assert response.json()["files"] == ["notes.md", "more.md"]
    assert response.json()["sync"]["status"] == "queued"
    assert (upload_folder(inbox) / "notes.md").read_bytes() == b"# Notes\n\nHello."
    assert AuditEvent.objects.filter(action="connection.file_uploaded", subject="inbox").count() == 2


def test_only_upload_connections_take_files(world, upload):
    response = upload("runbooks", world.key("alice"), "notes.md")
    assert (response.status_code, response.json()["error"]["code"]) == (422, "invalid_request")


@pytest.mark.parametrize("name", [".hidden", "a" * 201 + ".md"])
def test_a_file_without_an_ordinary_name_is_refused(world, inbox, upload, name):
    response = upload("inbox", world.key("alice"), name)
    assert (response.status_code, response.json()["error"]["code"]) == (422, "bad_file")


def test_a_file_over_the_limit_is_refused(world, inbox, upload, settings):
    settings.CORECUBE_MAX_FILE_BYTES = 4
    assert upload("inbox", world.key("alice"), "notes.md").status_code == 422


def test_an_upload_without_a_file_is_refused(world, inbox, upload):
    response = upload("inbox", world.key("alice"))
    assert (response.status_code, response.json()["error"]["param"]) == (422, "files")


def test_the_latest_sync_is_shown_with_its_problems(world, get):
    (world.root / "runbooks" / "empty.md").write_text("")
    from retrieval.ingest.sync import sync_connection

    sync_connection(world.runbooks)
    state = get(f"{LIST}/runbooks/sync", world.key("alice")).json()
    assert state["sync"]["status"] == "done"
    assert (state["sync"]["seen"], state["sync"]["unchanged"], state["sync"]["failed"]) == (3, 2, 1)
    assert [problem["item"] for problem in state["problems"]] == ["empty.md"]
    assert state["problem_count"] == 1


def test_before_the_first_sync_there_is_none(world, inbox, get):
    assert get(f"{LIST}/inbox/sync", world.key("alice")).json()["sync"] is None


def test_a_sync_can_be_queued_once(world, post):
    secret = world.key("alice")
    first = post(f"{LIST}/runbooks/sync", {}, secret)
    second = post(f"{LIST}/runbooks/sync", {}, secret)
    assert first.status_code == 202
    assert first.json()["id"] == second.json()["id"]
    assert Sync.objects.filter(connection=world.runbooks, status="queued").count() == 1


@pytest.mark.parametrize("slug", ["runbooks", "vault", "nowhere"])
def test_syncs_and_uploads_are_for_admins_whatever_the_slug(world, get, post, upload, slug):
    secret = world.key("bob")
    refused = [
        get(f"{LIST}/{slug}/sync", secret),
        post(f"{LIST}/{slug}/sync", {}, secret),
        upload(slug, secret, "notes.md"),
    ]
    assert [response.status_code for response in refused] == [403] * 3
    assert {response.json()["error"]["message"] for response in refused} == {"Only an admin may do this."}


def test_an_unknown_connection_is_not_found(world, get):
    response = get(f"{LIST}/nowhere/sync", world.key("alice"))
    assert (response.status_code, response.json()["error"]["code"]) == (404, "unknown_connection")


def test_an_admins_narrowed_key_manages_no_more_than_it_sees(world, get):
    key, secret = ApiKey.issue(user=world.alice, name="narrow")
    key.compartments.add(Compartment.objects.get(slug="finance"))
    assert get(f"{LIST}/ledger/sync", secret).status_code == 200
    assert get(f"{LIST}/runbooks/sync", secret).json() == get(f"{LIST}/nowhere/sync", secret).json()


def test_nothing_is_queued_when_the_upload_is_refused(world, inbox, upload):
    upload("inbox", world.key("alice"), ".hidden")
    assert not Sync.objects.filter(connection=inbox).exists()
    assert services.queue_sync(inbox, actor=None).status == "queued"


def test_listing_costs_the_same_however_many_there_are(world, get, django_assert_num_queries):
    secret = world.key("alice")
    get(LIST, secret)
    for number in range(5):
        Connection.objects.create(
            slug=f"more-{number}", name="More", kind="upload", compartment=world.ledger.compartment
        )
    # The key with its compartments, the grants with the connections.
    with django_assert_num_queries(2):
        assert len(get(LIST, secret).json()["connections"]) == 8


def test_a_refused_file_leaves_none_of_the_others(world, inbox, upload, settings):
    assert upload("inbox", world.key("alice"), "a.txt", ".hidden").status_code == 422
    settings.CORECUBE_MAX_FILE_BYTES = 4
    assert upload("inbox", world.key("alice"), "a.txt", "b.txt").status_code == 422
    assert not upload_folder(inbox).exists()
    assert not AuditEvent.objects.filter(action="connection.file_uploaded").exists()


def test_a_later_file_over_the_limit_leaves_none_of_the_others(world, inbox, client, settings):
    settings.CORECUBE_MAX_FILE_BYTES = 4
    files = [SimpleUploadedFile("a.txt", b"x"), SimpleUploadedFile("b.txt", b"x" * 5)]
    bearer = {"Authorization": f"Bearer {world.key('alice')}"}
    assert client.post(f"{LIST}/inbox/uploads", {"files": files}, headers=bearer).status_code == 422
    assert not upload_folder(inbox).exists()


def test_a_slug_that_the_database_cannot_hold_is_not_found(world, get, post):
    secret = world.key("alice")
    for response in (get(f"{LIST}/%00/sync", secret), post(f"{LIST}/%00/sync", {}, secret)):
        assert (response.status_code, response.json()["error"]["code"]) == (404, "unknown_connection")
