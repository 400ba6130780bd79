"""Connections, for admins."""

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from corecube.connectors.setup import upload_folder
from corecube.models import AuditEvent, Connection
from retrieval.models import Chunk, Document, Sync, SyncProblem

PAGES = ["/connections/", "/connections/runbooks/", "/connections/runbooks/progress/"]


@pytest.fixture(autouse=True)
def queued(monkeypatch):
    """Collect what would go to a worker."""
    from retrieval.ingest import tasks

    ids = []
    monkeypatch.setattr(tasks.work, "apply_async", lambda **options: ids.append(options))
    return ids


@pytest.fixture
def dropbox(world):
    return Connection.objects.create(
        slug="dropbox", name="Dropbox", kind="upload", compartment=world.runbooks.compartment
    )


@pytest.mark.parametrize("path", PAGES)
def test_an_admin_sees_it(browse, path):
    assert browse("alice").get(path).status_code == 200


@pytest.mark.parametrize("path", PAGES)
def test_for_anyone_else_it_does_not_exist(browse, path):
    assert browse("bob").get(path).status_code == 404


@pytest.mark.parametrize("path", ["sync", "upload", "switch"])
def test_nobody_else_changes_anything(browse, world, path):
    response = browse("bob").post(f"/connections/runbooks/{path}/", {"enabled": "no"})
    assert response.status_code == 404
    assert Connection.objects.filter(enabled=True).count() == 3
    assert not AuditEvent.objects.filter(actor=world.bob).exists()


def test_the_list_counts_what_each_connection_holds(browse, world):
    SyncProblem.objects.create(connection=world.vault, external_id="x", reason="corrupt", message="Broken.")
    rows = {row["connection"].slug: row for row in browse("alice").get("/connections/").context["rows"]}
    assert (rows["runbooks"]["documents"], rows["runbooks"]["problems"], rows["vault"]["problems"]) == (2, 0, 1)
    assert rows["runbooks"]["chunks"] == sum(document.chunks.count() for document in world.runbooks.documents.all())
    assert rows["runbooks"]["sync"]["status"] == "done"


def test_the_list_takes_the_same_statements_for_any_number_of_connections(
    browse, world, dropbox, django_assert_max_num_queries
):
    alice = browse("alice")
    # Session, user, connections, four counts, and what can be tried again.
    with django_assert_max_num_queries(8):
        alice.get("/connections/")


def test_a_connection_lists_its_problems(browse, world):
    SyncProblem.objects.create(connection=world.vault, external_id="a<b>.pdf", reason="corrupt", message="Broken.")
    text = browse("alice").get("/connections/vault/").content.decode()
    assert "a&lt;b&gt;.pdf" in text
    assert "Broken." in text


def test_documents_of_an_earlier_ingestion_version_are_shown(browse, world):
    assert 'id="older"' not in browse("alice").get("/connections/vault/").content.decode()
    Document.objects.filter(connection=world.vault).update(ingest_version=0)
    response = browse("alice").get("/connections/vault/")
    assert (response.context["older"], 'id="older"' in response.content.decode()) == (1, True)
    assert browse("alice").get("/connections/runbooks/").context["older"] == 0


def test_progress_is_asked_for_only_while_a_sync_is_open(browse, world):
    alice = browse("alice")
    assert "every 2s" not in alice.get("/connections/runbooks/").content.decode()
    sync = Sync.objects.create(connection=world.runbooks, status=Sync.Status.RUNNING)
    assert 'hx-trigger="every 2s"' in alice.get("/connections/runbooks/").content.decode()
    Sync.objects.filter(pk=sync.pk).update(status=Sync.Status.DONE)
    assert "hx-trigger" not in alice.get("/connections/runbooks/progress/").content.decode()


def test_sync_now_queues_one_sync(browse, world, queued, django_capture_on_commit_callbacks):
    with django_capture_on_commit_callbacks(execute=True):
        response = browse("alice").post("/connections/runbooks/sync/")
    assert response.headers["Location"] == "/connections/runbooks/"
    assert len(queued) == 1
    assert world.runbooks.syncs.get(status="queued").kind == Sync.Kind.FULL


def test_a_sync_that_stopped_at_the_guard_is_confirmed_by_an_admin(browse, world, queued):
    alice = browse("alice")
    Sync.objects.create(connection=world.runbooks, status=Sync.Status.STOPPED, message="2 of 2 documents are gone")
    assert 'name="allow_deletions" value="yes"' in alice.get("/connections/runbooks/").content.decode()
    alice.post("/connections/runbooks/sync/", {"allow_deletions": "yes"})
    assert world.runbooks.syncs.get(status="queued").allow_deletions
    assert 'name="allow_deletions"' not in alice.get("/connections/runbooks/").content.decode()


def test_a_disabled_connection_is_not_synced(browse, world, queued):
    Connection.objects.filter(pk=world.runbooks.pk).update(enabled=False)
    response = browse("alice").post("/connections/runbooks/sync/", follow=True)
    assert "The connection is disabled. Enable it before syncing." in response.content.decode()
    assert not world.runbooks.syncs.filter(status="queued").exists()


def test_uploaded_files_are_kept_and_synced(browse, dropbox, queued, django_capture_on_commit_callbacks):
    files = [SimpleUploadedFile("a.md", b"# A"), SimpleUploadedFile("b.md", b"# B")]
    with django_capture_on_commit_callbacks(execute=True):
        browse("alice").post("/connections/dropbox/upload/", {"uploads": files})
    kept = sorted(path.name for path in upload_folder(dropbox).iterdir())
    assert kept == ["a.md", "b.md"]
    assert len(queued) == 1


def test_a_refused_file_stops_none_of_the_others(browse, dropbox, settings):
    settings.CORECUBE_MAX_FILE_BYTES = 10
    files = [SimpleUploadedFile("big.md", b"# " + b"A" * 100), SimpleUploadedFile("b.md", b"# B")]
    response = browse("alice").post("/connections/dropbox/upload/", {"uploads": files}, follow=True)
    assert "big.md: " in response.content.decode()
    assert [path.name for path in upload_folder(dropbox).iterdir()] == ["b.md"]


def test_an_upload_without_files_says_so(browse, dropbox):
    response = browse("alice").post("/connections/dropbox/upload/", {}, follow=True)
    assert "This field is required." in response.content.decode()


def test_a_folder_takes_no_uploads(browse, world):
    response = browse("alice").post("/connections/runbooks/upload/", {"uploads": [SimpleUploadedFile("a.md", b"# A")]})
    assert response.status_code == 404


def test_a_connection_in_another_language_links_to_the_setting(browse, world):
    Chunk.objects.filter(connection_id=world.runbooks.pk).update(language="german")
    page = browse("alice").get("/connections/runbooks/")
    assert "Most of these documents are in German, but full-text search reads them as English" in page.text
    assert 'href="/connections/runbooks/edit/#id_language"' in page.text
    Connection.objects.filter(pk=world.runbooks.pk).update(language="german")
    assert "Most of these documents" not in browse("alice").get("/connections/runbooks/").text
