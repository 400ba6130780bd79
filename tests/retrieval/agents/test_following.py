"""Clients that follow documents: by one long request, or in a session of an older revision of the protocol."""

import asyncio
import json
from datetime import timedelta

import httpx2
import pytest
from mcp import MCPError
from mcp.client import session as client_session
from mcp.client.subscriptions import SubscriptionLost

from corecube.access import Principal
from corecube.models import ApiKey, Grant, User
from retrieval.agents import following, sessions
from retrieval.models import Document
from tests.redis_server import other_process

ACCEPT = "application/json, text/event-stream"


def uri_of(document):
    return f"corecube://documents/{document.pk}"


def change(document, fingerprint="changed"):
    Document.objects.filter(pk=document.pk).update(fingerprint=fingerprint)


def in_thread(act):
    """Return a function that also closes the connection that its thread has opened."""
    from django.db import connection

    def run(*arguments):
        try:
            act(*arguments)
        finally:
            connection.close()

    return run


def test_a_client_is_told_of_changes_in_scope_until_its_access_ends(session, world, monkeypatch):
    monkeypatch.setattr(following, "_POLL_SECONDS", 0.05)
    shown, hidden = Document.objects.get(external_id="rollback.md"), Document.objects.get(external_id="breach.md")
    key, secret = ApiKey.issue(user=world.bob, name="agent")

    def end():
        ApiKey.objects.filter(pk=key.pk).update(revoked_at="2026-01-01T00:00:00Z")

    async def follow(client):
        uris = [uri_of(hidden), uri_of(shown), "corecube://documents/nope"]
        async with client.listen(resource_subscriptions=uris, tools_list_changed=True) as changes:
            assert changes.honored.resource_subscriptions == uris
            assert changes.honored.tools_list_changed is None
            await asyncio.sleep(0.3)
            with_database = asyncio.get_running_loop().run_in_executor
            for document in (hidden, shown):
                await with_database(None, in_thread(change), document, "changed")
            told = [(await anext(changes)).uri]
            await with_database(None, in_thread(end))
            # The stream ends in order, with nothing more.
            return told + [it.uri async for it in changes]

    assert session(secret, follow) == [uri_of(shown)]
    assert not following._streams


@pytest.mark.parametrize("loss", ["grant", "user"])
def test_who_loses_access_is_told_nothing_more(session, world, monkeypatch, loss):
    monkeypatch.setattr(following, "_POLL_SECONDS", 0.05)
    shown = Document.objects.get(external_id="rollback.md")

    def lose():
        if loss == "grant":
            Grant.objects.filter(group__user=world.bob).delete()
        else:
            User.objects.filter(pk=world.bob.pk).update(is_active=False)

    def change():
        Document.objects.filter(pk=shown.pk).update(fingerprint="changed")

    async def follow(client):
        told = []
        with_database = asyncio.get_running_loop().run_in_executor
        try:
            async with client.listen(resource_subscriptions=[uri_of(shown)]) as changes, asyncio.timeout(1.0):
                await asyncio.sleep(0.2)
                await with_database(None, in_thread(lose))
                await asyncio.sleep(0.2)
                await with_database(None, in_thread(change))
                told.append((await anext(changes)).uri)
                told.append((await anext(changes)).uri)
        except (TimeoutError, SubscriptionLost, StopAsyncIteration):
            pass
        return told

    # That a document is gone for them is told once.
    assert len(session(world.key("bob"), follow)) == (1 if loss == "grant" else 0)


def test_too_many_streams_are_refused(session, world, monkeypatch):
    monkeypatch.setattr(following, "_MAX_STREAMS", 0)

    async def follow(client):
        with pytest.raises(MCPError, match="Too many"):
            async with client.listen(resource_subscriptions=[]):
                pass

    session(world.key("bob"), follow)


@pytest.fixture
def documents(world, monkeypatch):
    """Return a document that Bob sees and one that he does not, with streams that look often."""
    monkeypatch.setattr(following, "_POLL_SECONDS", 0.05)
    return Document.objects.get(external_id="rollback.md"), Document.objects.get(external_id="breach.md")


@pytest.fixture
def send(server):
    """Return a function that sends a request to the address, a message by POST."""

    def request(secret, message=None, *, session=None, method=""):
        headers = {"Authorization": f"Bearer {secret}", "Accept": ACCEPT}
        if session is not None:
            headers["Mcp-Session-Id"] = session
        body = {"jsonrpc": "2.0", "id": 1, **message} if message else None
        return httpx2.request(method or "POST", f"{server}/mcp", headers=headers, json=body, timeout=10)

    return request


INITIALIZE = {
    "method": "initialize",
    "params": {"protocolVersion": "2025-03-26", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}},
}
LIST = {"method": "tools/list"}


def subscribe(uri):
    return {"method": "resources/subscribe", "params": {"uri": uri}}


@pytest.fixture
def begun(send, world):
    """Return Bob's secret and the id of a session that he has begun."""
    secret = world.key("bob")
    return secret, send(secret, INITIALIZE).headers["Mcp-Session-Id"]


@pytest.mark.usefixtures("service")
@pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")
@pytest.mark.parametrize("revision", ["2025-03-26", "2025-06-18", "2025-11-25"])
def test_a_session_of_an_older_revision_reports_changes_in_scope(session, world, documents, monkeypatch, revision):
    monkeypatch.setattr(client_session, "LATEST_HANDSHAKE_VERSION", revision)
    shown, hidden = documents
    told = asyncio.Queue()

    async def take(message):
        told.put_nowait(message)

    async def follow(client):
        assert client.protocol_version == revision
        with_database = asyncio.get_running_loop().run_in_executor
        for document in documents:
            await client.subscribe_resource(uri_of(document))
        with pytest.raises(MCPError):
            await client.subscribe_resource("corecube://documents/nope")
        for document in (hidden, shown):
            await with_database(None, in_thread(change), document)
        first = await asyncio.wait_for(told.get(), 10)
        await client.unsubscribe_resource(uri_of(shown))
        await with_database(None, in_thread(change), shown, "again")
        await client.subscribe_resource(uri_of(shown))
        await with_database(None, in_thread(change), shown, "third")
        return first, await asyncio.wait_for(told.get(), 10), told.qsize()

    first, second, more = session(world.key("bob"), follow, "legacy", message_handler=take)
    assert [it.method for it in (first, second)] == ["notifications/resources/updated"] * 2
    assert [it.params.uri for it in (first, second)] == [uri_of(shown)] * 2
    assert more == 0


def test_what_a_session_follows_is_known_to_every_process(shared_redis, redis, world):
    key, _ = ApiKey.issue(user=world.bob, name="agent")
    principal = Principal(world.bob, key)
    here = sessions.opened(principal, sessions.begin(principal))
    here.follow("one", "a")
    script = (
        "from retrieval.agents.sessions import Session\n"
        f"session = Session({here.owner!r}, {here.name!r})\n"
        "print(session.followed(), session.changed({'one': 'b'}), session.changed({'one': 'b'}))"
    )
    assert other_process(script, redis.url).communicate(timeout=60)[0] == "('one',) ('one',) ()\n"
    assert (here.changed({"one": "b"}), here.changed({"one": "c"})) == ((), ("one",))


@pytest.mark.parametrize("method", ["POST", "GET", "DELETE"])
def test_a_session_is_not_found_by_others(send, world, begun, method):
    secret, id_ = begun
    for other, given in ((world.key("alice"), id_), (world.key("bob"), id_), (secret, id_ + "x"), (secret, "")):
        answer = send(other, LIST if method == "POST" else None, session=given, method=method)
        assert (answer.status_code, answer.json()["error"]["code"]) == (404, "session_not_found")
    assert send(secret, LIST, session=id_).status_code == 200


def test_a_session_that_its_client_ends_is_not_found_again(send, begun):
    secret, id_ = begun
    assert send(secret, session=id_, method="DELETE").status_code == 204
    assert send(secret, LIST, session=id_).status_code == 404
    for method in ("GET", "DELETE"):
        assert send(secret, session=id_, method=method).status_code == 404


def test_an_old_session_is_not_found(send, begun, monkeypatch):
    monkeypatch.setattr(sessions, "_MAX_AGE", timedelta(seconds=-1))
    assert send(begun[0], LIST, session=begun[1]).status_code == 404


def test_a_session_whose_state_is_lost_takes_calls_and_has_no_events(send, begun, documents, monkeypatch):
    secret, id_ = begun
    monkeypatch.setattr(sessions, "_IDLE_SECONDS", -1.0)
    assert send(secret, LIST, session=id_).status_code == 200
    assert send(secret, session=id_, method="GET").status_code == 404
    refused = send(secret, subscribe(uri_of(documents[0])), session=id_)
    assert "begin a new one" in refused.json()["error"]["message"]


def test_following_needs_a_session_and_has_limits(send, begun, documents, monkeypatch):
    secret, id_ = begun
    assert "Mcp-Session-Id" in send(secret, subscribe(uri_of(documents[0]))).json()["error"]["message"]
    monkeypatch.setattr(sessions, "MAX_FOLLOWED", 1)
    assert "result" in send(secret, subscribe(uri_of(documents[0])), session=id_).json()
    assert "100" in send(secret, subscribe(uri_of(documents[1])), session=id_).json()["error"]["message"]


def test_of_too_many_sessions_the_oldest_ends(send, begun, world, monkeypatch):
    monkeypatch.setattr(sessions, "_MAX_SESSIONS", 2)
    secret, first = begun
    others = [send(secret, INITIALIZE).headers["Mcp-Session-Id"] for _ in range(2)]
    assert send(secret, session=first, method="GET").status_code == 404
    assert [send(secret, session=it, method="DELETE").status_code for it in others] == [204, 204]


def test_too_many_streams_of_a_session_are_refused(send, begun, monkeypatch):
    monkeypatch.setattr(following, "_MAX_OWN_STREAMS", 0)
    refused = send(begun[0], session=begun[1], method="GET")
    assert (refused.status_code, refused.headers["Retry-After"]) == (429, "60")


@pytest.mark.parametrize("loss", ["key", "user", "session"])
def test_the_events_end_with_the_access(server, send, world, documents, loss):
    key, secret = ApiKey.issue(user=world.bob, name="agent")
    id_ = send(secret, INITIALIZE).headers["Mcp-Session-Id"]
    send(secret, subscribe(uri_of(documents[0])), session=id_)
    headers = {"Authorization": f"Bearer {secret}", "Accept": "text/event-stream", "Mcp-Session-Id": id_}
    with httpx2.stream("GET", f"{server}/mcp", headers=headers, timeout=10) as events:
        lines = events.iter_lines()
        assert next(lines) == ": keep-alive"
        change(documents[0])
        message = next(it for it in lines if it.startswith("data: "))
        assert json.loads(message[6:])["params"] == {"uri": uri_of(documents[0])}
        if loss == "key":
            ApiKey.objects.filter(pk=key.pk).update(revoked_at="2026-01-01T00:00:00Z")
        elif loss == "user":
            User.objects.filter(pk=world.bob.pk).update(is_active=False)
        else:
            send(secret, session=id_, method="DELETE")
        change(documents[0], "again")
        # What was found before the access ended may still come.
        assert sum(it.startswith("data: ") for it in lines) <= 1
    assert not following._streams
