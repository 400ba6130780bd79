"""Items that cannot be indexed: counted alike everywhere, from their failure until they are indexed."""

import ast
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from django.core.management import call_command
from django.utils import timezone

from corecube.connectors.types import ItemError, ItemProblem, SourceItem
from explorer.pages.connections.views import connection_rows
from retrieval.errors import EncoderError
from retrieval.ingest import tasks
from retrieval.ingest.jobs import job_states
from retrieval.ingest.preparation import prepare_raw
from retrieval.ingest.problems import ADVICE, PERMANENT, TRANSIENT, advice, reason_of
from retrieval.ingest.run import Source
from retrieval.ingest.services import cancel_sync, retry_failed
from retrieval.ingest.sync import sync_connection
from retrieval.models import Sync, SyncItem, SyncProblem

ROOT = Path(__file__).parents[3]
BAD = {
    "empty.md": b"",
    "scan.png": b"\x89PNG\r\n\x1a\n\0\0",
    "broken.pdf": b"%PDF-1.7 and nothing",
    "sheet.docx": b"PK\x03\x04 no",
}


@pytest.fixture(autouse=True)
def no_queue(monkeypatch):
    monkeypatch.setattr(tasks.work, "apply_async", lambda **_: None)


@pytest.fixture
def runbooks(world):
    for name, content in BAD.items():
        (world.root / "runbooks" / name).write_bytes(content)
    return world.runbooks


def counts(connection, sync):
    """Return every count of items that are not indexed: of the sync, of its items, of the connection, of its page."""
    return {
        sync.failed,
        sync.items.filter(state="failed").count(),
        connection.problems.count(),
        connection_rows([connection])[0]["problems"],
    }


def test_every_count_is_the_same_while_a_sync_runs_and_after_it(runbooks):
    seen = []

    def look(sync):
        seen.append(counts(runbooks, sync))

    sync = sync_connection(runbooks, progress=look)
    assert all(len(each) == 1 for each in seen)
    assert counts(runbooks, sync) == {4}
    assert job_states([sync], timezone.now())[0].label == "done with 4 problems"


@pytest.mark.parametrize("ends", ["cancelled", "failed"])
def test_problems_are_listed_of_a_sync_that_does_not_end_well(runbooks, monkeypatch, ends):
    # The page in which a listing ends is not noted; those before it are.
    monkeypatch.setattr("retrieval.ingest.listing._PAGE", 1)

    class Ends:
        """Yields a bad item, and then the sync ends."""

        def check(self):
            pass

        def items(self):
            yield ItemProblem("locked", "unreadable", "It is locked.")
            if ends == "failed":
                raise ZeroDivisionError
            yield SourceItem("a", "a.txt", uri="", locator="a", modified_at=None)

        def read(self, _):
            cancel_sync(Sync.objects.get(status="running"), actor=None)
            raise ItemError("corrupt", "It is broken.")

    sync = Sync(connection=runbooks)
    with suppress(ZeroDivisionError):
        sync_connection(runbooks, sync=sync, source=Source(Ends()))
    sync.refresh_from_db()
    assert (sync.status, sync.failed) == (ends, 1)
    assert [it.external_id for it in runbooks.problems.all()] == ["locked"]


def test_two_items_of_one_id_are_two_entries_and_count_so(runbooks):
    class Twins:
        def check(self):
            pass

        def items(self):
            for _ in range(3):
                yield SourceItem("a", "a.txt", uri="", locator="a", modified_at=None)

        def read(self, _):
            return b"Words."

    sync = sync_connection(runbooks, source=Source(Twins()))
    assert (sync.seen, sync.added, sync.failed) == (3, 1, 2)
    assert counts(runbooks, sync) == {2}


def test_what_is_taken_in_is_no_problem_any_more(runbooks, world):
    sync_connection(runbooks)
    (world.root / "runbooks" / "empty.md").write_text("Now with words.")
    (world.root / "runbooks" / "scan.png").unlink()
    sync = sync_connection(runbooks)
    assert counts(runbooks, sync) == {2}


def test_a_problem_stays_listed_until_its_retry_took_it_in(runbooks):
    sync = sync_connection(runbooks)
    SyncItem.objects.filter(external_id="broken.pdf").update(reason="too_slow")
    retry = retry_failed(sync, actor=None)
    assert retry.seen == 1
    assert runbooks.problems.count() == 4

    class Mended:
        def check(self):
            pass

        def items(self):
            return iter(())

        def read(self, _):
            return b"Words that can be read."

    sync_connection(runbooks, sync=retry, source=Source(Mended(), prepared))
    assert runbooks.problems.count() == 3


def prepared(raw, how):
    """Read a document as plain text, whatever its name says."""
    return prepare_raw(replace(raw, name="a.txt"), how)


def test_only_what_another_try_can_help_is_tried_again(runbooks):
    sync = sync_connection(runbooks)
    assert job_states([sync], timezone.now())[0].retryable == 0
    for reason in ADVICE:
        sync.items.filter(external_id="broken.pdf").update(reason=reason)
        can = reason not in PERMANENT
        assert job_states([sync], timezone.now())[0].retryable == int(can), reason


def test_a_page_offers_no_try_that_cannot_help_and_says_what_does(client, world, runbooks):
    sync = sync_connection(runbooks)
    client.force_login(world.alice)
    for path in (f"/jobs/{sync.pk}/", "/connections/runbooks/"):
        page = client.get(path).content.decode()
        assert "done with 4 problems" in page
        assert "Retry<" not in page
        assert "Replace the file with one that opens and sync again." in page
    SyncItem.objects.filter(external_id="broken.pdf").update(reason="unavailable")
    for path in (f"/jobs/{sync.pk}/", "/connections/runbooks/"):
        page = client.get(path).content.decode()
        assert page.count("Retry</button>") == 1
        assert 'aria-label="Retry broken.pdf"' in page


def test_the_api_tells_the_same(client, world, runbooks):
    sync = sync_connection(runbooks)
    headers = {"Authorization": f"Bearer {world.key('alice')}"}
    job = client.get(f"/api/v1/jobs/{sync.pk}", headers=headers).json()
    latest = client.get("/api/v1/connections/runbooks/sync", headers=headers).json()
    assert (job["state"], job["label"], job["failed"], job["retryable"]) == ("done", "done with 4 problems", 4, 0)
    assert (latest["sync"]["label"], latest["sync"]["failed"], latest["problem_count"]) == (job["label"], 4, 4)
    key = lambda it: it["item"]  # noqa: E731
    assert sorted(job["errors"], key=key) == sorted(latest["problems"], key=key)
    assert {it["retryable"] for it in job["errors"]} == {False}


def test_the_command_tells_the_same(runbooks, capsys):
    call_command("ingest", runbooks.config["path"], "--connection", "runbooks")
    printed = capsys.readouterr().out
    assert "done with 4 problems" in printed
    assert "4 failed" in printed
    assert len([line for line in printed.splitlines() if line.startswith("  ")]) == 4


def test_a_dry_run_finds_what_the_sync_would_refuse_in_the_same_words(runbooks):
    dry = sync_connection(runbooks, sync=Sync(connection=runbooks, kind=Sync.Kind.DRY_RUN))
    found = set(dry.items.filter(state="failed").values_list("external_id", "reason", "message"))
    assert (dry.status, dry.seen, dry.failed, dry.unchanged) == ("done", 6, 4, 2)
    assert not SyncProblem.objects.exists()
    sync = sync_connection(runbooks)
    assert set(runbooks.problems.values_list("external_id", "reason", "message")) == found
    assert (sync.failed, sync.seen) == (dry.failed, dry.seen)


def test_a_dry_run_opens_files_only_as_long_as_it_may(runbooks, settings):
    settings.CORECUBE_DRY_RUN_SECONDS = 0
    dry = sync_connection(runbooks, sync=Sync(connection=runbooks, kind=Sync.Kind.DRY_RUN))
    assert (dry.added, dry.failed, dry.unchanged) == (4, 0, 2)
    assert dry.message.startswith("0 of 4 new and changed files were opened in 0 seconds")


def test_a_file_that_can_no_longer_be_read_is_a_problem_of_a_dry_run(world, monkeypatch):
    from corecube.connectors.folder import FolderConnector

    read = FolderConnector.read

    def locked(connector, item):
        if item.external_id.endswith("queues.txt"):
            raise ItemError("unreadable", "The file cannot be read: Permission denied.")
        return read(connector, item)

    monkeypatch.setattr(FolderConnector, "read", locked)
    dry = sync_connection(world.runbooks, sync=Sync(connection=world.runbooks, kind=Sync.Kind.DRY_RUN))
    assert (dry.failed, dry.changed, dry.deleted) == (1, 0, 0)
    assert dry.items.get(state="failed").reason == "unreadable"


def test_the_command_of_a_dry_run_names_what_cannot_be_indexed(runbooks, capsys):
    call_command("ingest", runbooks.config["path"], "--connection", "runbooks", "--dry-run")
    printed = capsys.readouterr().out
    assert "4 cannot be indexed" in printed
    assert "  empty.md: empty: The file is empty." in printed


def reasons_in_code():
    """Return every reason that a connector, a parser or a worker gives, as the code writes it."""
    found = set()
    for path in [*ROOT.glob("corecube/connectors/**/*.py"), *ROOT.glob("retrieval/ingest/**/*.py")]:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in {"ItemError", "IngestError"}:
                found |= literals(node.args[0])
            elif isinstance(node, ast.Call) and getattr(node.func, "id", "") == "ItemProblem" and len(node.args) > 1:
                found |= literals(node.args[1])
            elif isinstance(node, ast.Assign | ast.keyword) and name_of(node) == "reason":
                found |= literals(node.value)
    return found - {""}


def name_of(node):
    return node.arg if isinstance(node, ast.keyword) else getattr(node.targets[0], "id", "")


def literals(node):
    if isinstance(node, ast.IfExp):
        return literals(node.body) | literals(node.orelse)
    return {node.value} if isinstance(node, ast.Constant) and isinstance(node.value, str) else set()


def test_every_reason_that_the_code_gives_has_its_consequence():
    found = reasons_in_code()
    assert len(found) > 20
    assert found - ADVICE.keys() == set()
    for error in (EncoderError("x"), ZeroDivisionError()):
        assert reason_of(error)[0] in ADVICE


def test_what_may_pass_and_what_lasts_are_told_apart():
    assert {"timeout", "unreachable", "unavailable", "embedding"} <= TRANSIENT
    assert {"unsupported_type", "encrypted", "too_large", "empty", "no_text", "refused", "corrupt"} <= PERMANENT
    assert advice("encrypted") == "Remove the password and sync again."
    assert advice("of another release") == ""
