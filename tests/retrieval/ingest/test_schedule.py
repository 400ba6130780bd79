"""Syncs that list only what changed, against a Confluence server, and what makes them look at everything again."""

from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest
from django.utils import timezone

from corecube.errors import UnavailableError
from corecube.models import Compartment, Connection
from corecube.secrets import seal
from retrieval.ingest import claims, listing, tasks
from retrieval.ingest.dispatch import complete_next, list_next, process_next, work_until_idle
from retrieval.ingest.listing import Listing
from retrieval.ingest.schedule import changes_since, queue_due
from retrieval.ingest.services import cancel_sync, queue_sync
from retrieval.ingest.sync import sync_connection
from retrieval.models import Chunk, Document, Sync, SyncItem, SyncProblem
from tests.corecube.connectors import conftest as servers
from tests.corecube.connectors.test_confluence import TOKEN, AnyPath, Confluence

LONG_AGO = "2020-01-01T10:00:00.000Z"
serve = servers.serve


@pytest.fixture(autouse=True)
def no_queue(monkeypatch):
    monkeypatch.setattr(tasks.work, "apply_async", lambda **_: None)


@pytest.fixture
def wiki(serve):
    """Return a site of four old pages, the second of which has an attachment."""
    it = Confluence(cloud=True)
    it.site = serve()
    it.site.pages = AnyPath(it)
    for number in range(1, 5):
        it.add(number, f"Page {number}", body=f"<p>Text {number} about alpha.</p>", version={"when": LONG_AGO})
    it.attach("att5", "notes.txt", b"Notes about gamma.", page=2, version={"when": LONG_AGO})
    it.contents["att5"]["extensions"]["mediaType"] = "text/plain"
    return it


@pytest.fixture
def space(db, wiki):
    """Return the connection of the site's space, synced once."""
    connection = Connection.objects.create(
        slug="wiki",
        name="Wiki",
        kind="confluence",
        config={"url": f"{wiki.site.url}/wiki", "spaces": ["ENG"], "user": "me@x", "edition": "cloud"},
        sealed_secrets=seal({"token": TOKEN}),
        compartment=Compartment.objects.create(slug="c", name="C"),
        sync_every_minutes=30,
    )
    assert sync_connection(connection).added == 5
    wiki.site.asked()
    return connection


def edit(wiki, number, text=None, **facts):
    """Change a page now, as its author would."""
    entry = wiki.contents[number]
    entry["version"] = {"number": entry["version"]["number"] + 1, "when": datetime.now(UTC).isoformat()}
    entry.update(facts)
    if text:
        wiki.bodies[number] = f"<p>{text}</p>"


def remove(wiki, number):
    del wiki.contents[number]


def restrict(wiki, number):
    wiki.contents[number]["restrictions"] = {
        "read": {"restrictions": {"user": {"results": [{"username": "amy"}]}, "group": {"results": []}}}
    }


def due(connection):
    """Queue what the schedule queues when the connection is due."""
    Connection.objects.filter(pk=connection.pk).update(next_sync_at=None)
    (sync,) = queue_due()
    return sync


def scheduled(connection):
    """Run what the schedule queues, and return it as it ended."""
    sync = due(connection)
    return sync_connection(sync.connection, sync=sync)


def age(hours):
    """Make all syncs so far older."""
    for sync in Sync.objects.all():
        for name in ("queued_at", "started_at", "finished_at"):
            moment = getattr(sync, name)
            Sync.objects.filter(pk=sync.pk).update(**{name: moment and moment - timedelta(hours=hours)})


def stored():
    return set(Document.objects.values_list("external_id", flat=True))


def texts(wiki):
    """Return the ids of the pages whose text was fetched and the files that were, after the check's one page."""
    paths = [path.partition("?")[0] for path in wiki.site.asked()]
    fetched = [path.rpartition("/")[2] for path in paths if "/pages/" in path or "/download/" in path]
    assert fetched.pop(0) == "1"
    return fetched


def test_of_a_changed_page_only_its_own_text_is_fetched_and_nothing_is_deleted(wiki, space):
    edit(wiki, "3", "Now about beta.")
    remove(wiki, "4")
    sync = scheduled(space)
    assert (sync.kind, sync.status, sync.seen, sync.changed, sync.deleted) == ("changes", "done", 1, 1, 0)
    searches = [path for path, _ in wiki.site.requests if "/content/search" in path]
    # The check's own, then pages and attachments by the time of their last change.
    assert ["lastmodified" in path for path in searches] == [False, True, True]
    assert texts(wiki) == ["3"]
    assert Chunk.objects.get(document__external_id="3").text == "Now about beta."
    assert stored() == {"1", "2", "3", "4", "att5"}
    space.refresh_from_db()
    assert space.last_synced_at == sync.started_at


def test_what_is_known_is_not_fetched_again_though_it_is_listed_again(wiki, space):
    edit(wiki, "3", "Now about beta.")
    scheduled(space)
    wiki.site.asked()
    sync = scheduled(space)
    assert (sync.kind, sync.seen, sync.unchanged) == ("changes", 1, 1)
    assert texts(wiki) == []


def test_a_deleted_page_goes_when_everything_is_looked_at_again_after_a_day(wiki, space):
    remove(wiki, "4")
    age(hours=23)
    assert scheduled(space).deleted == 0
    # Changes do not put off the look at everything.
    age(hours=1)
    sync = scheduled(space)
    assert (sync.kind, sync.deleted) == ("full", 1)
    assert stored() == {"1", "2", "3", "att5"}


def test_new_pages_and_changed_attachments_come_with_the_changes(wiki, space):
    wiki.add(6, "New", body="<p>About delta.</p>", version={"when": datetime.now(UTC).isoformat()})
    edit(wiki, "att5")
    wiki.files["/download/attachments/2/notes.txt"] = b"Notes about epsilon."
    sync = scheduled(space)
    assert (sync.kind, sync.added, sync.changed) == ("changes", 1, 1)
    assert texts(wiki) == ["6", "notes.txt"]
    assert Chunk.objects.get(document__external_id="att5").text == "Notes about epsilon."


def test_a_page_moved_out_of_the_space_goes_when_a_person_syncs(wiki, space):
    edit(wiki, "3", space={"key": "FIN"})
    assert scheduled(space).kind == "changes"
    assert "3" in stored()
    dry = sync_connection(space, sync=queue_sync(space, actor=None, dry_run=True))
    assert (dry.seen, dry.deleted) == (4, 1)
    assert sync_connection(space, sync=queue_sync(space, actor=None)).deleted == 1
    assert "3" not in stored()


def test_a_page_found_to_be_restricted_takes_what_hangs_on_it_along_at_once(wiki, space, monkeypatch):
    # Found when other changes are noted already.
    monkeypatch.setattr(listing, "_PAGE", 1)
    edit(wiki, "1", "Now about beta.")
    edit(wiki, "2")
    restrict(wiki, "2")
    sync = scheduled(space)
    assert (sync.kind, sync.status, sync.changed, sync.unchanged, sync.deleted) == ("full", "done", 1, 2, 2)
    assert stored() == {"1", "3", "4"}
    # It is not stored any more, so that it is no reason to look at everything the next time.
    assert scheduled(space).kind == "changes"
    problem = SyncProblem.objects.get()
    assert (problem.external_id, problem.message[:1]) == ("restricted/ENG", "2")


def test_a_restriction_that_the_site_does_not_date_is_seen_with_everything(wiki, space):
    restrict(wiki, "2")
    assert scheduled(space).kind == "changes"
    assert "2" in stored()
    age(hours=24)
    assert scheduled(space).kind == "full"
    assert stored() == {"1", "3", "4"}


def test_more_restricted_at_once_than_the_guard_allows_still_asks(wiki, space):
    for number in ("1", "2", "3"):
        edit(wiki, number)
        restrict(wiki, number)
    sync = scheduled(space)
    assert (sync.kind, sync.status) == ("full", "stopped")
    assert len(stored()) == 5
    assert scheduled(space).kind == "full"


def test_problems_of_what_did_not_change_stay_listed(wiki, space):
    wiki.attach("att6", "broken.pdf", b"no pdf", page=1, version={"when": LONG_AGO})
    sync_connection(space)
    assert SyncProblem.objects.get().external_id == "att6"
    assert scheduled(space).kind == "changes"
    assert SyncProblem.objects.get().external_id == "att6"


@pytest.mark.parametrize(
    "change",
    [
        {"config": {"spaces": ["ENG", "FIN"]}},
        {"sealed_secrets": "another"},
        {"chunk_profile": "chunk_first"},
        {"language": "german"},
        {"source_type": "web"},
    ],
)
def test_a_change_of_what_decides_over_the_content_asks_for_everything(space, change):
    assert changes_since(space) is not None
    change = {"config": space.config | change["config"]} if "config" in change else change
    Connection.objects.filter(pk=space.pk).update(**change)
    assert due(space).kind == "full"


def test_a_change_of_the_name_or_of_who_sees_it_does_not(space):
    Connection.objects.filter(pk=space.pk).update(name="Other", sensitivity=4, enrichment="context")
    assert due(space).kind == "changes"


def test_settings_that_change_while_the_sync_waits_count_too(wiki, space):
    sync = due(space)
    assert sync.kind == "changes"
    Connection.objects.filter(pk=space.pk).update(chunk_profile="chunk_first")
    work_until_idle()
    sync.refresh_from_db()
    assert (sync.kind, sync.status, sync.seen) == ("full", "done", 5)
    assert due(space).kind == "changes"


def test_a_setting_turns_it_off(space, settings):
    settings.CORECUBE_FULL_SYNC_HOURS = 0
    assert due(space).kind == "full"


@pytest.mark.parametrize("status", ["failed", "cancelled", "stopped"])
@pytest.mark.parametrize("kind", ["full", "changes", "retry"])
def test_after_a_sync_that_was_not_done_everything_is_looked_at(space, status, kind):
    now = timezone.now()
    Sync.objects.create(connection=space, status=status, kind=kind, started_at=now, finished_at=now)
    assert due(space).kind == "full"


def test_a_source_that_cannot_tell_is_always_looked_at_whole(space, tmp_path):
    (tmp_path / "a.md").write_text("# A\n\nAlpha.\n")
    Connection.objects.filter(pk=space.pk).update(kind="folder", config={"path": str(tmp_path)}, sealed_secrets="")
    space.refresh_from_db()
    sync_connection(space, sync=Sync(connection=space, allow_deletions=True))
    sync = scheduled(space)
    assert (sync.kind, sync.status) == ("full", "done")


def test_the_moment_is_the_start_of_the_last_sync_that_was_done(wiki, space):
    first = changes_since(space)
    assert first == Sync.objects.get().started_at
    assert changes_since(space) < scheduled(space).started_at == changes_since(space)
    sync_connection(space, sync=queue_sync(space, actor=None, dry_run=True))
    assert changes_since(space) == Sync.objects.get(kind="changes").started_at


def test_a_listing_that_breaks_off_loses_no_change(wiki, space):
    edit(wiki, "3", "Now about beta.")
    wiki.site.pages = AnyPath(lambda path, at: (500, {}, b"") if "attachment%22+and" in path else wiki(path, at))
    with pytest.raises(UnavailableError):
        scheduled(space)
    assert "Text 3" in Chunk.objects.get(document__external_id="3").text
    wiki.site.pages = AnyPath(wiki)
    # However long ago the change is by then.
    wiki.contents["3"]["version"]["when"] = LONG_AGO
    sync = scheduled(space)
    assert (sync.kind, sync.changed) == ("full", 1)
    assert Chunk.objects.get(document__external_id="3").text == "Now about beta."


def test_a_worker_that_dies_in_the_middle_loses_no_change(wiki, space, settings):
    for number in ("1", "3"):
        edit(wiki, number, f"Now {number} about beta.")
    sync = due(space)
    assert list_next(uuid4())
    sync.refresh_from_db()
    # The first worker listed the changes, and this one dies with them in hand.
    assert len(claims.claim(sync, uuid4())) == 2
    edit(wiki, "4", "Changed while nobody looked.")
    lost = timezone.now() - timedelta(seconds=settings.CORECUBE_LOST_SECONDS + 1)
    SyncItem.objects.update(heartbeat_at=lost)
    work_until_idle()
    sync.refresh_from_db()
    assert (sync.kind, sync.status, sync.changed) == ("changes", "done", 2)
    assert scheduled(space).changed == 1


def test_a_process_that_dies_while_it_lists_begins_again_with_the_same_moment(wiki, space, monkeypatch):
    edit(wiki, "3", "Now about beta.")
    sync = due(space)

    def die(*_):
        raise SystemExit

    with monkeypatch.context() as patch:
        patch.setattr(Listing, "_retry_failed", die)
        with pytest.raises(SystemExit):
            work_until_idle()
    wiki.contents["3"]["version"]["when"] = LONG_AGO
    Sync.objects.filter(pk=sync.pk).update(heartbeat_at=None)
    work_until_idle()
    sync.refresh_from_db()
    assert (sync.kind, sync.status, sync.changed) == ("changes", "done", 1)


def test_what_a_passing_trouble_kept_out_is_tried_again_though_it_is_not_listed_again(wiki, space):
    edit(wiki, "3", "Now about beta.")
    first = due(space)
    assert list_next(uuid4())
    SyncItem.objects.update(attempts=claims.MAX_ATTEMPTS - 1)
    wiki.site.pages = AnyPath(lambda *_: (503, {"Retry-After": "0"}, b"{}"))
    assert process_next(uuid4())
    assert complete_next()
    first.refresh_from_db()
    assert (first.status, first.failed) == ("done", 1)
    assert SyncProblem.objects.get().reason == "unavailable"
    wiki.site.pages = AnyPath(wiki)
    wiki.contents["3"]["version"]["when"] = LONG_AGO
    sync = scheduled(space)
    assert (sync.kind, sync.seen, sync.changed) == ("changes", 1, 1)
    assert not SyncProblem.objects.exists()
    assert not SyncItem.objects.exists()


def test_a_failed_item_that_changed_again_is_kept_once(wiki, space):
    wiki.attach("att6", "broken.pdf", b"no pdf", page=1, version={"when": datetime.now(UTC).isoformat()})
    for _ in range(2):
        assert scheduled(space).failed == 1
    assert SyncItem.objects.get().external_id == "att6"


def test_cancelled_changes_are_found_again(wiki, space):
    edit(wiki, "3", "Now about beta.")
    sync = due(space)
    assert list_next(uuid4())
    cancel_sync(sync, actor=None)
    wiki.contents["3"]["version"]["when"] = LONG_AGO
    assert scheduled(space).changed == 1
