"""Searches that read a real streaming replica: that is paused, falls behind, is killed and comes back."""

import json
import signal
import tempfile
import time
from pathlib import Path

import pytest

from tests.environment import environment_of
from tests.installation import Observer
from tests.postgres_server import primary_and_replica
from tests.race import until

_LIMIT_SECONDS = 2
#: Definitions of a process that searches, as bob.
_PREPARED = """
import builtins
from corecube.access import Principal
from corecube.models import Compartment, Connection, Grant, User
from corecube.replicas import replicas
from corecube.scope import Sensitivity
from retrieval.index import active
from retrieval.models import Document
from retrieval.search.request import SearchRequest
from retrieval.search.service import search
from tests.fakes import HashEncoder
encoder = HashEncoder()
active.encoder = lambda *_: encoder

def found(text="rollback"):
    principal = Principal(User.objects.get(username="bob"))
    outcome = search(SearchRequest(text=text, preset="corecube"), principal=principal)
    return sorted(Document.objects.get(pk=it.chunk_id.document_id).title if Document.objects.filter(
        pk=it.chunk_id.document_id) else "deleted" for it in outcome.state.hits), list(outcome.state.degraded)

def figures():
    return {"reads": sum(replicas().reads.values()), **{it or "none": n for it, n in replicas().fallbacks.items()},
            "problem": replicas().each[0].problem.value}

builtins.found, builtins.figures, builtins.replicas = found, figures, replicas
"""
_FILLED = """
from django.core.management import call_command
from corecube.models import Compartment, Grant, User
call_command("ingest", {folder!r}, "--connection", "Runbooks", "--compartment", "Engineering")
bob = User.objects.create_user("bob")
Grant.objects.create(user=bob, compartment=Compartment.objects.get(), clearance=3)
"""


class Searching:
    """An installation with a primary and a replica, and a process that searches there."""

    def __init__(self, primary, replica, folder):
        self.primary, self.replica = primary, replica
        urls = {"DATABASE_URL": primary.url("corecube"), "CORECUBE_REPLICA_URLS": replica.url("corecube")}
        self.observer = Observer(
            environment_of(
                folder,
                **urls,
                CORECUBE_REPLICA_LAG_SECONDS=str(_LIMIT_SECONDS),
                CORECUBE_BM25="no",
                CORECUBE_VECTORS="no",
                PYTHONPATH=".",
            )
        )
        self.observer(_PREPARED)

    def evaluate(self, expression):
        """Return the value of an expression in the searching process."""
        return json.loads(self.observer(f"import json; print(json.dumps({expression}))"))

    def titles(self):
        return self.evaluate("found()")[0]

    def figures(self):
        return self.evaluate("figures()")

    def until_used(self):
        """Search until the replica is read."""
        before = self.figures()["reads"]
        until(lambda: self.titles() and self.figures()["reads"] > before, seconds=30)


@pytest.fixture(scope="module")
def searching():
    with primary_and_replica() as (primary, replica), tempfile.TemporaryDirectory() as name:
        files = Path(name) / "files"
        files.mkdir()
        for place in ("one", "two", "three"):
            (files / f"{place}.md").write_text(f"# {place.title()}\n\nThe rollback of {place}.")
        made = Searching(primary, replica, Path(name))
        try:
            made.observer(_FILLED.format(folder=str(files)))
            yield made
        finally:
            made.observer.end()


@pytest.fixture
def paused(searching):
    """Let the replica replay nothing, as one that falls behind."""
    searching.until_used()
    searching.replica.execute("SELECT pg_wal_replay_pause()")
    until(lambda: searching.replica.execute("SELECT pg_get_wal_replay_pause_state()") == [("paused",)])
    yield searching
    searching.replica.execute("SELECT pg_wal_replay_resume()")


def test_documents_come_from_the_replica_and_the_rest_from_the_primary(searching):
    searching.until_used()
    before = searching.figures()["reads"]
    assert searching.titles() == ["One", "Three", "Two"]
    assert searching.figures()["reads"] > before
    count = "SELECT count(*) FROM pg_stat_activity WHERE datname = 'corecube' AND backend_type = 'client backend'"
    assert searching.replica.execute(count)[0][0] > 1
    # Nothing can be written to it: the records of the searches are at the primary.
    assert searching.primary.execute("SELECT count(*) > 0 FROM retrieval_searchrecord") == [(True,)]


def test_access_that_is_revoked_ends_at_once(paused):
    paused.primary.execute("UPDATE corecube_grant SET clearance = 0")
    try:
        before = paused.figures()
        assert paused.titles() == []
        assert paused.replica.execute("SELECT max(clearance) FROM corecube_grant") == [(3,)]
        paused.primary.execute("UPDATE corecube_grant SET clearance = 3")
        assert len(paused.titles()) == 3
        assert paused.figures()["reads"] > before["reads"]
    finally:
        paused.primary.execute("UPDATE corecube_grant SET clearance = 3")


def test_a_deleted_document_is_found_no_longer_than_the_limit(paused):
    before = paused.figures()
    paused.observer(
        "from retrieval.index.writer import delete_documents; from retrieval.models import Document\n"
        "delete_documents([Document.objects.get(title='Two').pk])"
    )
    deleted = time.monotonic()
    assert paused.replica.execute("SELECT count(*) FROM retrieval_document") == [(3,)]
    time.sleep(max(0, deleted + _LIMIT_SECONDS - time.monotonic()))
    # Read before the limit, it would still be there; from here on the primary is read.
    assert paused.titles() == ["One", "Three"]
    after = paused.figures()
    assert (after["problem"], after["reads"]) == ("behind", before["reads"])
    assert after["behind"] > before.get("behind", 0)
    words = paused.evaluate("replicas().words()")
    assert words == "Replica 1 is too far behind the primary."


def test_one_that_has_caught_up_is_read_again(searching):
    searching.until_used()
    assert searching.titles() == ["One", "Three"]
    assert searching.evaluate("replicas().words()") == ""


def test_no_search_fails_when_it_is_killed_amid_searches(searching):
    searching.until_used()
    before = searching.figures()
    searching.observer(
        "import builtins, threading\n"
        "builtins.answers, builtins.going = [], True\n"
        "def go():\n"
        "    while going:\n"
        "        try: answers.append(found())\n"
        "        except Exception as error: answers.append(repr(error))\n"
        "builtins.thread = threading.Thread(target=go); thread.start()"
    )
    until(lambda: searching.evaluate("len(answers)") > 2)
    searching.replica.end(signal.SIGQUIT)
    done = searching.evaluate("len(answers)")
    until(lambda: searching.evaluate("len(answers)") > done + 2)
    searching.observer("import builtins; builtins.going = False; thread.join()")
    assert {json.dumps(it) for it in searching.evaluate("answers")} == {'[["One", "Three"], []]'}
    after = searching.figures()
    assert after["problem"] == "down"
    assert after["down"] > before.get("down", 0)
    assert searching.evaluate("replicas().words()") == "Replica 1 does not answer."
    searching.replica.begin()
    searching.until_used()


def test_one_that_hangs_is_left_once_it_is_older_than_the_limit(searching):
    searching.until_used()
    searching.replica.send(signal.SIGSTOP)
    try:
        until(lambda: searching.figures()["problem"], seconds=30)
        before = searching.figures()["reads"]
        assert searching.titles() == ["One", "Three"]
        assert searching.figures()["reads"] == before
    finally:
        searching.replica.send(signal.SIGCONT)
    searching.until_used()


def test_health_metrics_and_doctor_show_it(searching):
    searching.until_used()
    state = searching.evaluate(
        "(lambda part: [part.state, part.reason])"
        "(__import__('retrieval.operations.health', fromlist=['x']).checked_parts(10)['replicas'])"
    )
    assert state == ["ok", ""]
    text = searching.observer(
        "from prometheus_client import generate_latest; from retrieval.operations.metrics import REGISTRY\n"
        "print(generate_latest(REGISTRY).decode())"
    )
    assert 'corecube_replica_reads_total{replica="replica_1"}' in text
    assert 'corecube_replica_fallbacks_total{reason="down"}' in text
    assert 'corecube_replica_lag_seconds{replica="replica_1"}' in text
    searching.replica.end(signal.SIGQUIT)
    page = searching.observer(
        "import contextlib\n"
        "replicas.cache_clear()  # as a process that has just started\n"
        "from django.core.management import call_command\n"
        "with contextlib.suppress(SystemExit): call_command('doctor')"
    )
    assert "Read replicas: Replica 1 does not answer." in page
    assert str(searching.replica.folder) not in page
