"""A connection's documents, coverage and progress, its first sync, and uploads that a script sends."""

from uuid import uuid4

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from corecube.connectors.setup import upload_folder
from corecube.models import Connection, Grant
from retrieval.ingest.sync import sync_connection
from retrieval.models import Document, Sync, SyncItem, SyncProblem

PAGES = ["/connections/runbooks/", "/connections/runbooks/progress/", "/connections/runbooks/first-sync/"]


@pytest.fixture
def alice(browse):
    return browse("alice")


@pytest.fixture
def broken(world):
    """Add a file that cannot be read."""
    (world.root / "runbooks" / "broken.pdf").write_bytes(b"no document")
    sync_connection(world.runbooks)


def listed(client, **query):
    return client.get("/connections/runbooks/", query, headers={"HX-Request": "true"}).context["documents"]


@pytest.mark.parametrize("path", PAGES)
def test_it_does_not_exist_for_who_is_no_admin(browse, world, path):
    assert browse("bob").get(path).status_code == 404


def test_an_admin_with_access_reads_titles(alice, world, htmx):
    for headers in ({}, htmx):
        assert "Rolling back" in alice.get(PAGES[0], headers=headers).content.decode()


@pytest.mark.parametrize("path", PAGES)
@pytest.mark.parametrize("query", [{}, {"q": "o"}, {"problem": "any"}])
def test_an_admin_without_access_reads_no_title(alice, world, broken, htmx, path, query):
    document = Document.objects.get(external_id="rollback.md")
    SyncProblem.objects.create(connection=world.runbooks, external_id="rollback.md", reason="network", message="Later.")
    Document.objects.filter(pk=document.pk).update(title="Otter Berthold")
    Grant.objects.filter(user=world.alice).delete()
    page = "".join(alice.get(path, query, headers=headers).content.decode() for headers in ({}, htmx))
    assert "Berthold" not in page
    assert str(document.pk) not in page
    assert "Ask about this source" not in page


def test_documents_are_found_by_name_and_have_their_problem(alice, world, broken):
    assert [row["name"] for row in listed(alice)] == sorted(
        Document.objects.filter(connection=world.runbooks).order_by("title").values_list("external_id", flat=True)
    )
    assert [row["name"] for row in listed(alice, q="rollb")] == ["rollback.md"]
    assert listed(alice, q="\0nothing") == []
    (row,) = listed(alice, problem="any")
    assert (row["name"], row["document"], row["problem"].reason) == ("broken.pdf", None, "corrupt")
    assert listed(alice, problem="network") == []
    assert listed(alice, problem="corrupt", q="rollb") == []


def test_coverage_is_the_share_of_the_items_that_are_searchable(alice, world, broken):
    count = Document.objects.filter(connection=world.runbooks).count()
    SyncProblem.objects.create(connection=world.runbooks, external_id="rollback.md", reason="network", message="Later.")
    # The problem of a document that is searchable all the same does not count.
    assert alice.get("/connections/runbooks/").context["coverage"] == count * 100 // (count + 1)
    Document.objects.filter(connection=world.ledger).delete()
    assert alice.get("/connections/ledger/").context["coverage"] is None


def test_problems_are_grouped_by_reason_and_retried_together(alice, world, broken):
    sync = Sync.objects.filter(connection=world.runbooks).latest("queued_at")
    failed = SyncItem.objects.get(sync=sync, external_id="broken.pdf")
    for name in ("a.md", "b.md"):
        SyncProblem.objects.create(connection=world.runbooks, external_id=name, reason="network", message="Later.")
        values = {"external_id": name, "reason": "network", "item": failed.item, "state": SyncItem.State.FAILED}
        SyncItem.objects.create(sync=sync, document_id=uuid4(), **values)
    corrupt, network = alice.get("/connections/runbooks/").context["problem_groups"]
    assert (corrupt["reason"], corrupt["count"], corrupt["jobs"]) == ("corrupt", 1, {})
    assert (network["reason"], network["count"], network["jobs"]) == ("network", 2, {sync.pk: ["a.md", "b.md"]})


def test_what_a_sync_works_on_is_shown_with_its_progress(alice, world):
    sync = Sync.objects.create(connection=world.runbooks, status=Sync.Status.RUNNING, stage=Sync.Stage.WORKING)
    values = {"state": SyncItem.State.RUNNING, "stage": SyncItem.Stage.EMBEDDING, "chunks": 8, "embedded": 2}
    SyncItem.objects.create(sync=sync, document_id=uuid4(), external_id="long.md", **values)
    page = alice.get("/connections/runbooks/progress/")
    assert page.context["in_progress"] == [
        {"name": "long.md", "stage": "embedding", "percent": 25, "chunks": 8, "embedded": 2}
    ]
    assert "2 of 8 chunks" in page.content.decode()
    Grant.objects.filter(user=world.alice).delete()
    assert "long.md" not in alice.get("/connections/runbooks/progress/").content.decode()
    assert "HX-Trigger" not in page.headers
    Sync.objects.filter(pk=sync.pk).update(status=Sync.Status.DONE)
    assert alice.get("/connections/runbooks/progress/").headers["HX-Trigger"] == '{"synced": {}}'


def test_a_source_that_was_synced_can_be_asked(alice, world):
    page = alice.get("/connections/runbooks/first-sync/").content.decode()
    assert "documents are searchable" in page
    assert 'href="/chat/?narrowed=1&amp;source=runbooks"' in page
    assert alice.get("/chat/?narrowed=1&source=runbooks").context["scope_words"] == "Runbooks"


@pytest.fixture
def dropbox(world):
    """A place for uploads."""
    compartment = world.runbooks.compartment
    return Connection.objects.create(slug="dropbox", name="Dropbox", kind="upload", compartment=compartment)


def sent(client, name, folder="", content=b"# A"):
    values = {"alone": "yes", "folder": folder, "uploads": SimpleUploadedFile(name, content)}
    return client.post("/connections/dropbox/upload/", values)


def test_a_file_sent_alone_is_stored_in_its_folder_and_synced_later(alice, dropbox):
    assert sent(alice, "a.md", "handbook/2026").status_code == 204
    assert (upload_folder(dropbox) / "handbook" / "2026" / "a.md").read_bytes() == b"# A"
    assert not dropbox.syncs.exists()


@pytest.mark.parametrize(
    ("name", "folder"),
    [
        ("a.md", "../up"),
        ("a.md", "a/.hidden"),
        (".a.md", ""),
        ("a.md", "/".join("d" * 21)),
        ("a.md", "x\x07"),
        ("handbook", ""),
        ("a.md", "b.md/deep"),
    ],
)
def test_a_bad_path_is_refused_in_words(alice, dropbox, name, folder):
    sent(alice, "b.md")
    sent(alice, "c.md", "handbook")
    answer = sent(alice, name, folder)
    assert (answer.status_code, answer.headers["Content-Type"]) == (422, "text/plain; charset=utf-8")
    found = sorted(it.name for it in upload_folder(dropbox).rglob("*") if it.is_file())
    assert found == ["b.md", "c.md"]


def test_nobody_else_sends_files(browse, dropbox):
    assert sent(browse("bob"), "a.md").status_code == 404
    assert not upload_folder(dropbox).exists()
