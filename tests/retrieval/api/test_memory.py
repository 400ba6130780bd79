"""POST /api/v1/remember and /api/v1/recall."""

import os
import signal
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import httpx2
import jwt
import pytest

from corecube.access import Principal, scope_for
from corecube.keys import allow_forwarding
from corecube.models import ApiKey, AuditEvent, Compartment, Connection, Grant, PushedItem
from retrieval.ingest import push, tasks
from retrieval.models import Document, Memory, Sync
from tests.processes import LIMITED, processes

REMEMBER, RECALL, SEARCH = "/api/v1/remember", "/api/v1/recall", "/api/v1/search"
NOTE = "The pump of hall seven is called Griselda and wants oil in march."


@pytest.fixture
def remember(post):
    return lambda secret, text=NOTE, **more: post(REMEMBER, {"text": text, **more}, secret)


@pytest.fixture
def recall(post):
    def ask(secret, query="pump Griselda", **more):
        return post(RECALL, {"query": query, **more}, secret).json()["items"]

    return ask


def texts(items, origin="memory"):
    return [it["text"] for it in items if it["origin"] == origin]


def test_the_first_item_makes_the_memory_for_its_user_alone(world, remember):
    answer = remember(world.key("charlie"), kind="procedural", project="halls", title="Oil")
    assert (answer.status_code, answer.json()["state"], answer.json()["title"]) == (200, "indexed", "Oil")
    memory = Memory.objects.get()
    compartment = memory.connection.compartment
    assert (memory.user, memory.connection.name, memory.connection.kind) == (world.charlie, "Memory of charlie", "push")
    assert [(it.user, it.clearance) for it in compartment.grants.all()] == [(world.charlie, 3)]
    assert list(compartment.connections.all()) == [memory.connection]
    seen = [it.connection.slug for it in scope_for(Principal(world.charlie)).included]
    assert seen == [memory.connection.slug]
    for other in (world.alice, world.bob):
        assert memory.connection_id not in scope_for(Principal(other)).connection_ids
    document = Document.objects.get(pk=answer.json()["id"])
    assert all(salience is not None for salience in document.chunks.values_list("salience", flat=True))
    assert (document.metadata["memory_kind"], document.metadata["memory_project"]) == ("procedural", "halls")
    assert set(AuditEvent.objects.values_list("action", flat=True)) >= {
        "compartment.private_created",
        "grant.changed",
        "connection.created",
    }
    assert NOTE not in str(list(AuditEvent.objects.values()))


def test_what_is_remembered_can_be_recalled_at_once(world, remember, recall):
    secret = world.key("bob")
    done = remember(secret, at="2026-02-03T04:05:06", kind="episodic").json()
    (item,) = [it for it in recall(secret) if it["origin"] == "memory"]
    assert (item["text"], item["kind"], item["document_id"], item["at"]) == (
        NOTE,
        "episodic",
        done["id"],
        "2026-02-03T04:05:06Z",
    )
    assert item["source"]["name"] == "Memory of bob"


def test_the_same_text_again_takes_its_place(world, remember):
    secret = world.key("bob")
    first = remember(secret, kind="semantic").json()
    second = remember(secret, kind="decision").json()
    assert first["id"] == second["id"]
    assert PushedItem.objects.count() == 1
    assert Document.objects.get(pk=first["id"]).metadata["memory_kind"] == "decision"
    assert remember(secret, project="other").json()["id"] != first["id"]


def test_projects_kinds_and_times_narrow_the_memory(world, remember, recall):
    secret = world.key("bob")
    for text, more in {
        "The pump of atlas is Griselda.": {"project": "atlas", "kind": "semantic", "at": "2026-01-10T00:00:00Z"},
        "The pump of borealis is Gundula.": {"project": "borealis", "kind": "semantic", "at": "2026-02-10T00:00:00Z"},
        "Every pump wants oil.": {"kind": "procedural", "at": "2026-03-10T00:00:00Z"},
    }.items():
        remember(secret, text, **more)
    asked = "Which pump wants oil?"
    assert len(texts(recall(secret, asked))) == 3
    assert set(texts(recall(secret, asked, project="atlas"))) == {
        "The pump of atlas is Griselda.",
        "Every pump wants oil.",
    }
    assert texts(recall(secret, asked, kinds=["procedural", "code"])) == ["Every pump wants oil."]
    assert texts(recall(secret, asked, since="2026-02-01T00:00:00Z", until="2026-03-01T00:00:00")) == [
        "The pump of borealis is Gundula."
    ]


def test_the_budget_holds(world, remember, post):
    secret = world.key("bob")
    for number in range(6):
        remember(secret, f"Griselda note {number}: " + "the pump needs oil and care. " * 12)
    answer = post(RECALL, {"query": "pump rollback", "budget_tokens": 300}, secret).json()
    assert answer["items"]
    assert sum(it["token_count"] for it in answer["items"]) == answer["token_count"] <= 300
    numbers = list(range(1, len(answer["items"]) + 1))
    # The best at both ends.
    assert [it["number"] for it in answer["items"]] == [*numbers[::2], *numbers[1::2][::-1]]


def test_without_a_memory_the_rest_of_the_scope_is_recalled(world, recall):
    items = recall(world.key("bob"), "rollback staging")
    assert items
    assert {it["source"]["connection"] for it in items} == {"runbooks"}
    assert not Memory.objects.exists()


@pytest.mark.parametrize("person", ["alice", "charlie"])
def test_nobody_else_finds_it_in_any_way(world, remember, post, get, person):
    done = remember(world.key("bob")).json()
    slug = Memory.objects.get().connection.slug
    secret = world.key(person)
    for path, body in ((SEARCH, {"query": "pump Griselda", "explain": True}), (RECALL, {"query": "pump Griselda"})):
        assert "hall seven" not in post(path, body, secret).content.decode()
    assert post(SEARCH, {"query": "a", "scope": {"include": [slug]}}, secret).status_code == 404
    assert get(f"/api/v1/documents/{done['id']}", secret).status_code == 404
    assert slug not in get("/api/v1/connections", secret).content.decode()


def test_two_users_that_remember_the_same_have_it_twice(world, remember, recall):
    ids = {remember(world.key(person)).json()["id"] for person in ("alice", "bob")}
    assert len(ids) == 2
    for person in ("alice", "bob"):
        assert texts(recall(world.key(person))) == [NOTE]


class TestNarrowedKeys:
    @pytest.fixture(params=["compartment", "level"])
    def narrowed(self, world, request):
        key, secret = ApiKey.issue(user=world.bob, name="narrow")
        if request.param == "compartment":
            key.compartments.add(Compartment.objects.get(slug="engineering"))
        elif request.param == "level":
            ApiKey.objects.filter(pk=key.pk).update(max_sensitivity=2)
        return secret

    def test_they_neither_make_nor_reach_the_memory(self, world, narrowed, remember, recall):
        secret = narrowed
        for _ in range(2):
            refused = remember(secret)
            assert (refused.status_code, refused.json()["error"]["code"]) == (403, "memory_closed")
            assert "not accessible" in refused.json()["error"]["message"]
            assert texts(recall(secret)) == []
            remember(world.key("bob"))
        assert PushedItem.objects.count() == 1

    def test_a_front_end_reaches_nobodys_memory(self, world, remember, post):
        """What only one user is granted lies outside what a front end's key and they both see."""
        remember(world.key("bob"))
        key, secret = ApiKey.issue(user=world.alice, name="front end")
        signing = allow_forwarding(key, actor=world.alice)
        now = int(time.time())

        def as_bob(path, body):
            claims = {"sub": "bob", "aud": "corecube", "iat": now, "exp": now + 60}
            token = jwt.encode(claims, signing, algorithm="HS256")
            return post(path, body, secret, **{"X-CoreCube-User": token})

        refused = as_bob(REMEMBER, {"text": "Another."})
        assert (refused.status_code, refused.json()["error"]["code"]) == (403, "memory_closed")
        recalled = as_bob(RECALL, {"query": "pump Griselda rollback"})
        assert recalled.json()["items"]
        assert texts(recalled.json()["items"]) == []

    def test_a_key_narrowed_to_the_memory_reaches_it(self, world, remember, recall):
        remember(world.key("bob"))
        key, secret = ApiKey.issue(user=world.bob, name="memory only")
        key.compartments.add(Memory.objects.get().connection.compartment)
        assert remember(secret, "Another note of the pump.").status_code == 200
        assert set(texts(recall(secret))) == {NOTE, "Another note of the pump."}
        assert texts(recall(secret), "documents") == []

    def test_a_key_for_one_preset_searches_with_it(self, world, remember):
        key, secret = ApiKey.issue(user=world.bob, name="none")
        ApiKey.objects.filter(pk=key.pk).update(presets=["nothing"])
        assert remember(secret).status_code == 200


def test_a_memory_that_an_admin_closed_stays_closed(world, remember, recall):
    secret = world.key("bob")
    remember(secret)
    connection = Memory.objects.get().connection
    Connection.objects.filter(pk=connection.pk).update(enabled=False)
    assert remember(secret).json()["error"]["code"] == "memory_closed"
    Connection.objects.filter(pk=connection.pk).update(enabled=True)
    Grant.objects.filter(compartment=connection.compartment).delete()
    assert remember(secret).json()["error"]["code"] == "memory_closed"
    assert texts(recall(secret)) == []
    assert not Grant.objects.filter(compartment=connection.compartment).exists()


def test_a_taken_slug_is_left_alone(world, remember):
    taken = Compartment.objects.create(slug=f"memory-{world.bob.pk}", name="Not a memory")
    Grant.objects.create(user=world.alice, compartment=taken, clearance=3)
    assert remember(world.key("bob")).status_code == 200
    assert Memory.objects.get().connection.compartment != taken


def test_it_goes_with_its_user(world, remember):
    remember(world.key("bob"))
    remember(world.key("charlie"))
    world.bob.delete()
    assert Memory.objects.get().user == world.charlie
    assert Connection.objects.filter(kind="push").count() == 1
    assert Compartment.objects.filter(slug__startswith="memory").count() == 1
    assert Document.objects.filter(source_type="text", metadata__has_key="memory_kind").count() == 1


def test_a_deleted_memory_begins_anew(world, remember, recall):
    secret = world.key("bob")
    remember(secret, "Old matter of the pump.")
    Memory.objects.get().connection.delete()
    remember(secret)
    assert texts(recall(secret)) == [NOTE]


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"text": ""}, "text"),
        ({"text": "x" * 50_001}, "text"),
        ({"text": "a", "title": "x" * 201}, "title"),
        ({"text": "a", "project": "x" * 101}, "project"),
        ({"text": "a", "kind": "dream"}, "kind"),
        ({"text": "a", "at": "soon"}, "at"),
        ({"text": "a", "connection": "runbooks"}, "connection"),
        ({"text": "\0 "}, None),
        ({"text": "\ud800"}, "text"),
    ],
)
def test_what_cannot_be_remembered(world, remember, body, param):
    text = body.pop("text")
    answer = remember(world.key("bob"), text, **body)
    assert (answer.status_code, answer.json()["error"]["param"]) == (422, param)
    assert not PushedItem.objects.exists()


def test_two_first_items_at_once_make_one_memory(server, world):
    headers = {"Authorization": f"Bearer {world.key('bob')}"}

    def send(number):
        body = {"text": f"Note {number} of the pump."}
        return httpx2.post(f"{server}{REMEMBER}", json=body, headers=headers, timeout=30).status_code

    with ThreadPoolExecutor(6) as pool:
        assert set(pool.map(send, range(6))) == {200}
    assert Memory.objects.count() == 1
    assert Compartment.objects.filter(slug__startswith="memory").count() == 1
    # Four at a time are taken in by a process itself; the others wait for the sync.
    assert PushedItem.objects.filter(connection=Memory.objects.get().connection).count() == 6


@pytest.fixture
def stopped_children(world, server):
    """Return the limited processes of this one, which answer nothing while the test runs."""
    with httpx2.Client(base_url=server, headers={"Authorization": f"Bearer {world.key('bob')}"}, timeout=60) as client:
        assert client.post(REMEMBER, json={"text": "The first."}).json()["state"] == "indexed"
    pids = processes(LIMITED, parent=os.getpid())
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    yield pids
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has /proc")
@pytest.mark.django_db(transaction=True)
def test_a_text_that_takes_too_long_waits_for_a_sync_and_holds_up_nobody(world, server, stopped_children, monkeypatch):
    assert stopped_children
    monkeypatch.setattr(tasks.work, "apply_async", lambda **_: None)
    monkeypatch.setattr(push, "_SECONDS_AT_ONCE", 3.0)
    secret = world.key("bob")
    with httpx2.Client(base_url=server, headers={"Authorization": f"Bearer {secret}"}, timeout=60) as client:
        with ThreadPoolExecutor(1) as pool:
            remembered = pool.submit(client.post, REMEMBER, json={"text": "a" * 50_000})
            time.sleep(0.5)
            assert client.get("/healthz").status_code == 200
            # It was answered while the text was being prepared.
            assert not remembered.done()
            answer = remembered.result()
        assert (answer.status_code, answer.json()["state"]) == (200, "queued")
        assert Sync.objects.get(status="queued").connection.kind == "push"
        # The child that took too long is gone; another one may have taken its place already.
        assert set(stopped_children) - set(processes(LIMITED, parent=os.getpid()))


class Ticker:
    """Does a little again and again in a thread, as a health check would, and notes how long it was kept from it."""

    def __init__(self):
        self.longest_wait = 0.0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._stop.set()
        self._thread.join()

    def _run(self):
        last = time.monotonic()
        while not self._stop.wait(0.01):
            now = time.monotonic()
            self.longest_wait, last = max(self.longest_wait, now - last), now


@pytest.mark.parametrize(
    "unit", ["a", "7", "_", ".", "a-", "a.", "a@", "1,", "[1", "a\n", " \n", "\u4e2d", "QUJD/+9z", "A b. "]
)
def test_a_hostile_text_is_remembered_in_time_and_holds_up_nothing_else(world, remember, unit):
    text = (unit * 50_000)[:49_990] + " remember"
    with Ticker() as ticker:
        started = time.monotonic()
        answer = remember(world.key("bob"), text)
        seconds = time.monotonic() - started
    assert answer.status_code == 200
    assert seconds < 10
    assert ticker.longest_wait < 3


@pytest.mark.parametrize("query", ["a" * 30_000, "a OR " * 6_000, '"a ' * 10_000, "a-" * 15_000, "A b. " * 6_000])
def test_a_hostile_query_is_answered_in_time(world, post, query):
    for preset in ("helix", "corecube"):
        started = time.monotonic()
        answer = post(SEARCH, {"query": query, "preset": preset}, world.key("bob"))
        assert answer.status_code == 200
        assert time.monotonic() - started < 20


def test_a_query_beyond_the_limit_is_refused_before_anything_reads_it(world, post):
    query = "it " * 50_000
    refused = post(SEARCH, {"query": query}, world.key("bob"))
    assert (refused.status_code, "32,000" in refused.content.decode()) == (422, True)
    messages = [{"role": "user", "content": "What is oil?"}, {"role": "assistant", "content": "An oil."}]
    body = {"model": "corecube", "messages": [*messages, {"role": "user", "content": query}]}
    refused = post("/v1/chat/completions", body, world.key("bob"))
    assert (refused.status_code, "32,000" in refused.content.decode()) == (422, True)
