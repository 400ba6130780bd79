"""Who gets in at /mcp, and how a refusal looks."""

import json

import pytest

from corecube.models import ApiKey
from retrieval.search import prepare

LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
ACCEPT = "application/json, text/event-stream"


@pytest.fixture
def send(client):
    """Return a function that posts one message."""

    def post(message, secret="", **headers):
        given = {"Authorization": f"Bearer {secret}"} if secret else {}
        sent = {"Accept": ACCEPT} | given | headers
        body = message if isinstance(message, (str, bytes)) else json.dumps(message)
        return client.post("/mcp", body, content_type="application/json", headers=sent)

    return post


def test_a_key_gets_in(world, send):
    answer = send(LIST, world.key("bob"))
    assert (answer.status_code, answer.headers["Content-Type"]) == (200, "application/json")
    assert len(answer.json()["result"]["tools"]) == 5
    assert answer.headers["x-request-id"]
    assert "Mcp-Session-Id" not in answer.headers


@pytest.mark.parametrize("secret", ["", "cc_wrong"])
def test_without_a_key_there_is_no_answer(world, send, secret):
    answer = send(LIST, secret)
    assert (answer.status_code, "resource_metadata=" in answer.headers["WWW-Authenticate"]) == (401, True)
    assert answer.json()["error"]["code"] == "invalid_api_key"


def test_a_signed_in_browser_has_no_way_in(world, client, send):
    client.force_login(world.alice)
    assert send(LIST).status_code == 401


def test_a_revoked_key_is_out_at_once(world, send):
    key, secret = ApiKey.issue(user=world.bob, name="agent")
    assert send(LIST, secret).status_code == 200
    ApiKey.objects.filter(pk=key.pk).update(revoked_at="2026-01-01T00:00:00Z")
    assert send(LIST, secret).status_code == 401


def test_a_key_has_its_rate(world, send):
    key, secret = ApiKey.issue(user=world.bob, name="agent")
    ApiKey.objects.filter(pk=key.pk).update(requests_per_minute=2)
    assert [send(LIST, secret).status_code for _ in range(3)] == [200, 200, 429]
    refused = send(LIST, secret)
    assert 1 <= int(refused.headers["Retry-After"]) <= 60
    assert refused.json()["error"]["type"] == "rate_limit_error"


@pytest.mark.parametrize(
    ("origin", "status"),
    [
        ("http://testserver", 200),
        ("https://TESTSERVER", 200),
        ("https://front.example.org", 200),
        ("https://front.example.org.evil.example", 403),
        ("http://evil.example", 403),
        ("http://testserver:81", 403),
        ("testserver", 403),
        ("null", 403),
    ],
)
def test_pages_of_other_sites_are_refused(world, send, settings, origin, status):
    settings.CSRF_TRUSTED_ORIGINS = ["https://front.example.org"]
    answer = send(LIST, world.key("bob"), Origin=origin)
    assert answer.status_code == status
    assert status == 200 or answer.json()["error"]["code"] == "origin_not_allowed"


def test_a_name_that_is_not_this_servers_is_refused(world, send):
    """A page that DNS leads here sends its own name as the host."""
    answer = send(LIST, world.key("bob"), Host="evil.example", Origin="http://evil.example")
    assert answer.status_code == 400


@pytest.mark.parametrize("method", ["get", "delete", "put"])
def test_without_a_session_there_is_nothing_but_messages(world, client, method):
    answer = getattr(client, method)("/mcp", headers={"Authorization": f"Bearer {world.key('bob')}"})
    assert (answer.status_code, answer.headers["Allow"]) == (405, "POST, GET, DELETE" if method == "put" else "POST")
    assert answer.json()["error"]["code"] == "method_not_allowed"


@pytest.mark.parametrize("body", ["", "{", "[]", '"x"', '{"jsonrpc": "2.0"}', b"\xff", "[" * 5000])
def test_nonsense_is_refused(world, send, body):
    assert send(body, world.key("bob")).status_code == 400


def test_a_large_message_is_refused(world, send, settings):
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 1000
    answer = send(LIST | {"params": {"x": "y" * 2000}}, world.key("bob"))
    assert (answer.status_code, answer.json()["error"]["code"]) == (413, "request_too_large")


def test_an_unforeseen_failure_says_nothing_of_its_cause(world, send, monkeypatch):
    def fail(*_, **__):
        raise RuntimeError("secret detail")

    monkeypatch.setattr(prepare, "scope_for", fail)
    call = {**LIST, "method": "tools/call", "params": {"name": "search", "arguments": {"query": "rollback"}}}
    answer = send(call, world.key("bob"))
    assert answer.json()["result"]["isError"] is True
    assert "secret" not in answer.content.decode()


HOSTILE = ["\ud800", "a\0b", "9" * 5000, 10**400, float("nan"), [], None]
ARGUMENTS = {
    "search": ["query", "preset", "top_k"],
    "fetch": ["id"],
    "recall": ["query", "project", "budget_tokens"],
    "remember": ["text", "title", "kind", "project"],
    "evidence": ["subject", "section_set", "section", "compartments"],
}


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("tool", ARGUMENTS)
def test_no_argument_makes_a_tool_fail(world, send, tool, caplog):
    secret = world.key("alice")
    usual = dict.fromkeys({"query", "text", "subject"} & set(ARGUMENTS[tool]), "rollback")
    for argument in ARGUMENTS[tool]:
        for value in HOSTILE:
            call = {"name": tool, "arguments": {**usual, argument: value}}
            answer = send({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}, secret)
            assert answer.status_code < 500, (argument, value)
    assert [record for record in caplog.records if record.levelname == "ERROR"] == []


@pytest.mark.parametrize(
    "body", ["[" * 5000, b"\xff", b'{"id": "\xed\xa0\x80"}', '{"\\ud800": 1}', "", "NaN", '"\\u0000"']
)
def test_no_message_makes_it_fail(world, send, body):
    assert 400 <= send(body, world.key("bob")).status_code < 500
