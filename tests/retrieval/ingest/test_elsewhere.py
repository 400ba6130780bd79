"""A worker on a machine that does not have what the connection's documents were read from."""

import io
import shutil

import pytest

from corecube.connectors import connector_for
from corecube.connectors.setup import upload_folder
from corecube.connectors.types import ItemError
from corecube.errors import ConfigError
from corecube.models import Connection
from retrieval.ingest.dispatch import work_until_idle
from retrieval.ingest.services import queue_sync, store_upload
from retrieval.ingest.sync import sync_connection
from retrieval.models import Document, Sync

pytestmark = pytest.mark.django_db


@pytest.fixture
def inbox(governed):
    """A connection that files are uploaded to, without documents yet."""
    return Connection.objects.create(
        slug="inbox", name="Inbox", kind="upload", compartment=governed.runbooks.compartment
    )


def upload(connection, *names):
    for name in names:
        store_upload(connection, name=name, content=io.BytesIO(f"# {name}\n\nText.".encode()), actor=None)


def stored(connection):
    return Document.objects.filter(connection=connection).count()


def confirmed(connection):
    return Sync(connection=connection, allow_deletions=True)


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("make", [lambda it: Sync(connection=it), confirmed])
def test_uploads_that_lie_on_another_machine_are_not_taken_for_gone(inbox, settings, count, make):
    settings.CORECUBE_DELETE_GUARD_PERCENT = 100
    upload(inbox, *(f"{number}.md" for number in range(count)))
    sync_connection(inbox)
    shutil.rmtree(upload_folder(inbox))
    with pytest.raises(ConfigError, match="CORECUBE_VAR_DIR"):
        sync_connection(inbox, sync=make(inbox))
    last = inbox.syncs.latest("queued_at")
    assert (last.status, stored(inbox)) == ("failed", count)
    assert str(upload_folder(inbox)) in last.message


def test_the_first_sync_of_uploads_that_lie_on_another_machine_fails_too(inbox):
    upload(inbox, "plan.md")
    shutil.rmtree(upload_folder(inbox))
    queue_sync(inbox, actor=None)
    work_until_idle(lambda: None)
    last = inbox.syncs.latest("queued_at")
    assert last.status == "failed"
    assert str(upload_folder(inbox)) in last.message


def test_before_the_first_upload_a_sync_finds_nothing(inbox):
    assert sync_connection(inbox).status == "done"


def test_a_dry_run_does_not_say_that_all_uploads_are_gone(inbox):
    upload(inbox, "plan.md")
    sync_connection(inbox)
    shutil.rmtree(upload_folder(inbox))
    with pytest.raises(ConfigError, match="not on this machine"):
        sync_connection(inbox, sync=Sync(connection=inbox, kind=Sync.Kind.DRY_RUN))


@pytest.mark.parametrize("kind", ["upload", "folder"])
def test_an_item_that_another_worker_listed_is_tried_again_by_one_that_has_the_folder(inbox, world, kind):
    upload(inbox, "plan.md")
    connector = connector_for(inbox if kind == "upload" else world.runbooks)
    item = next(connector.items())
    root = upload_folder(inbox) if kind == "upload" else connector.root
    shutil.rmtree(root)
    with pytest.raises(ItemError, match=str(root)) as caught:
        connector.read(item)
    assert caught.value.reason == "unavailable"


@pytest.mark.parametrize("count", [1, 3])
def test_a_folder_that_is_empty_all_at_once_may_be_a_mount_that_is_missing(governed, settings, count):
    settings.CORECUBE_DELETE_GUARD_PERCENT = 100
    root = governed.root / "share"
    root.mkdir()
    for number in range(count):
        (root / f"{number}.md").write_text("# Plan\n\nText.")
    share = governed.runbooks
    share.config = {"path": str(root)}
    share.save()
    sync_connection(share)
    for path in root.iterdir():
        path.unlink()
    stopped = sync_connection(share)
    assert (stopped.status, stored(share)) == ("stopped", count)
    assert "mount" in stopped.message
    assert sync_connection(share, sync=confirmed(share)).status == "done"
    assert stored(share) == 0


def test_a_folder_that_is_not_there_fails_the_sync(world):
    shutil.rmtree(world.root / "runbooks")
    before = stored(world.runbooks)
    with pytest.raises(ConfigError, match="runbooks"):
        sync_connection(world.runbooks, sync=confirmed(world.runbooks))
    assert stored(world.runbooks) == before > 0
