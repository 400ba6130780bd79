"""What a key may not see is in nothing that it gets: no hit, count, trace, citation, message or header."""

import json
import re

import pytest
from asgiref.sync import async_to_sync

from corecube.models import ApiKey, Compartment, Connection, Grant
from retrieval.index.writer import delete_all_documents
from retrieval.models import Document, SearchRecord

SEARCH = "/api/v1/search"
CHAT = "/v1/chat/completions"
#: Words of the vault and the ledger, of which Bob may see nothing, and their names.
HIDDEN = ("zanzibar", "tangerine", "48,200", "breach", "costs", "vault", "ledger", "finance", "restricted")
QUERY = "rollback zanzibar tangerine breach costs"
#: What differs between two runs of the same search.
PASSING = frozenset({"trace_id", "id", "created", "timings", "ms", "synced_at", "age_days"})


_UNKNOWN_WORDS = re.compile(r"no document that was searched contains [^.]*\.")


def chat_body(**more):
    return {"model": "corecube", "messages": [{"role": "user", "content": QUERY}], **more}


def body_of(response):
    if not response.streaming:
        return response.content.decode()
    if not hasattr(response, "read_once"):

        async def read():
            return b"".join([part async for part in response.streaming_content])

        response.read_once = async_to_sync(read)().decode()
    return response.read_once


#: Path and JSON body; no body means GET.
REQUESTS = {
    "search": (SEARCH, {"query": QUERY, "top_k": 100}),
    "search explained": (SEARCH, {"query": QUERY, "explain": True}),
    "chat": (CHAT, chat_body()),
    "chat explained": (CHAT, chat_body(corecube={"explain": True})),
    "chat streamed": (CHAT, chat_body(stream=True)),
    "connections": ("/api/v1/connections", None),
    "models": ("/v1/models", None),
    "sync state": ("/api/v1/connections/vault/sync", None),
    "sync": ("/api/v1/connections/vault/sync", {}),
    "upload": ("/api/v1/connections/vault/uploads", {}),
}


@pytest.fixture
def send(post, get):
    """Return a function that sends one of the requests with a key."""

    def send_one(name, secret):
        path, body = REQUESTS[name]
        return get(path, secret) if body is None else post(path, body, secret)

    return send_one


def hidden_ids():
    return [str(document.pk) for document in Document.objects.filter(connection__slug__in=["vault", "ledger"])]


def assert_no_trace_of_it(response):
    # A verdict may say which words of the query itself stand nowhere in scope; that they are asked for is no secret.
    told = _UNKNOWN_WORDS.sub("", (body_of(response) + str(dict(response.headers))).lower())
    assert [word for word in (*HIDDEN, *hidden_ids()) if word in told] == []


@pytest.mark.parametrize("name", REQUESTS)
def test_bob_is_told_nothing_of_what_he_may_not_see(world, send, name):
    assert_no_trace_of_it(send(name, world.key("bob")))


@pytest.mark.parametrize("name", REQUESTS)
def test_charlie_is_told_nothing_at_all(world, send, name):
    response = send(name, world.key("charlie"))
    assert_no_trace_of_it(response)
    assert "deployctl" not in body_of(response)


@pytest.mark.parametrize("path", ["/api/v1/documents/{}", "/api/v1/documents/{}?limit=1"])
def test_no_document_out_of_scope_can_be_read(world, get, path):
    for document in hidden_ids():
        response = get(path.format(document), world.key("bob"))
        assert response.status_code == 404
        assert_no_trace_of_it(response)


def steady(value):
    """Return an answer without what differs between two runs, its floats rounded."""
    if isinstance(value, dict):
        return {key: steady(item) for key, item in value.items() if key not in PASSING}
    if isinstance(value, list):
        return [steady(item) for item in value]
    return round(value, 3) if isinstance(value, float) else value


@pytest.mark.parametrize("name", ["search", "search explained", "chat", "chat explained", "connections"])
def test_the_hidden_changes_no_number_that_bob_sees(world, send, name):
    secret = world.key("bob")
    before = steady(send(name, secret).json())
    for connection in (world.vault, world.ledger):
        delete_all_documents(connection)
        connection.delete()
    assert steady(send(name, secret).json()) == before


def test_the_stored_trace_names_no_chunk_out_of_scope(world, post):
    post(SEARCH, {"query": QUERY, "explain": True}, world.key("bob"))
    stored = json.dumps(SearchRecord.objects.get().trace)
    assert all(document not in stored for document in hidden_ids())
    assert SearchRecord.objects.get().connection_ids == [world.runbooks.pk]


@pytest.mark.parametrize("side", ["include", "exclude"])
@pytest.mark.parametrize("path", [SEARCH, CHAT])
def test_an_invisible_connection_is_refused_as_an_unknown_one(world, post, path, side):
    def refused(slug):
        scope = {side: ["runbooks", slug]}
        body = {"query": QUERY, "scope": scope} if path == SEARCH else chat_body(corecube={"scope": scope})
        return post(path, body, world.key("bob"))

    invisible, unknown = refused("vault"), refused("nowhere")
    assert invisible.status_code == unknown.status_code == 404
    assert invisible.json() == unknown.json()
    assert invisible.json()["error"]["code"] == "unknown_connection"
    assert "vault" not in invisible.content.decode()


def test_only_an_admin_is_told_of_excluded_connections(world, post):
    Grant.objects.filter(user=world.alice).delete()
    body = {"query": QUERY, "explain": True}
    assert "excluded" not in post(SEARCH, body, world.key("bob")).json()["explain"]
    excluded = post(SEARCH, body, world.key("alice")).json()["explain"]["excluded"]
    assert {(it["connection"], it["reason"]) for it in excluded} == {
        ("runbooks", "no_grant"),
        ("vault", "no_grant"),
        ("ledger", "no_grant"),
    }


def test_an_admin_is_not_told_of_them_unasked(world, post):
    Grant.objects.filter(user=world.alice).delete()
    content = post(SEARCH, {"query": "rollback"}, world.key("alice")).content.decode().lower()
    assert not [word for word in HIDDEN if word in content]


def test_a_narrowed_key_of_an_admin_sees_and_is_told_no_more(world, post, get):
    key, secret = ApiKey.issue(user=world.alice, name="narrow")
    key.compartments.add(Compartment.objects.get(slug="finance"))
    answer = post(SEARCH, {"query": QUERY, "explain": True}, secret)
    assert {hit["source"]["connection"] for hit in answer.json()["hits"]} == {"ledger"}
    assert answer.json()["explain"]["excluded"] == []
    told = _UNKNOWN_WORDS.sub("", answer.content.decode().lower())
    assert not [word for word in ("zanzibar", "vault", "runbooks", "deployctl") if word in told]
    assert [it["connection"] for it in get("/api/v1/connections", secret).json()["connections"]] == ["ledger"]


def test_a_key_narrowed_by_sensitivity_sees_no_more(world, post):
    key, secret = ApiKey.issue(user=world.alice, name="narrow")
    key.max_sensitivity = 1
    key.save()
    answer = post(SEARCH, {"query": QUERY, "explain": True}, secret)
    assert {hit["source"]["connection"] for hit in answer.json()["hits"]} == {"runbooks", "ledger"}
    assert "vault" not in answer.content.decode()


@pytest.mark.parametrize("name", REQUESTS)
def test_a_grant_that_is_gone_is_gone_at_once(world, send, name):
    secret = world.key("bob")
    Grant.objects.filter(group__user=world.bob).delete()
    assert "deployctl" not in body_of(send(name, secret))


@pytest.mark.parametrize("name", REQUESTS)
def test_a_disabled_connection_is_gone_at_once(world, send, name):
    secret = world.key("bob")
    Connection.objects.filter(pk=world.runbooks.pk).update(enabled=False)
    assert "deployctl" not in body_of(send(name, secret))
