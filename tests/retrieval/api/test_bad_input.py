"""Every kind of bad input has its status, its code and a message that repeats nothing of it."""

import pytest
from django.db import OperationalError

from retrieval.errors import ModelMissingError, StageError
from retrieval.index import active
from retrieval.search import prepare
from retrieval.search import request as search_request

SEARCH = "/api/v1/search"
CHAT = "/v1/chat/completions"
LONG = "x" * 100_000

SEARCHES = {
    "empty query": ({"query": ""}, 422, "empty_query", "query"),
    "white space": ({"query": " \n\t\u00a0"}, 422, "empty_query", "query"),
    "nothing but NUL": ({"query": "\0\0"}, 422, "empty_query", "query"),
    "100,000 characters": ({"query": LONG}, 422, "query_too_long", "query"),
    "no query": ({}, 422, "invalid_request", "query"),
    "null query": ({"query": None}, 422, "invalid_request", "query"),
    "number as query": ({"query": 7}, 422, "invalid_request", "query"),
    "unknown preset": ({"query": "a", "preset": "nope"}, 404, "unknown_preset", "preset"),
    "preset with NUL": ({"query": "a", "preset": "\0"}, 404, "unknown_preset", "preset"),
    "unknown connection": ({"query": "a", "scope": {"include": ["nope"]}}, 404, "unknown_connection", "scope"),
    "preset with a lone surrogate": ('{"query": "a", "preset": "\\ud800"}', 404, "unknown_preset", "preset"),
    "connection with a lone surrogate": (
        '{"query": "a", "scope": {"include": ["\\ud800"]}}',
        404,
        "unknown_connection",
        "scope",
    ),
    "connection with NUL": ({"query": "a", "scope": {"exclude": ["\0"]}}, 404, "unknown_connection", "scope"),
    "top_k 0": ({"query": "a", "top_k": 0}, 422, "invalid_request", "top_k"),
    "top_k 101": ({"query": "a", "top_k": 101}, 422, "invalid_request", "top_k"),
    "top_k in words": ({"query": "a", "top_k": "many"}, 422, "invalid_request", "top_k"),
    "enormous top_k": ('{"query": "a", "top_k": ' + "9" * 400 + "}", 422, "invalid_request", "top_k"),
    "scope as a list": ({"query": "a", "scope": ["x"]}, 422, "invalid_request", "scope"),
    "number as slug": ({"query": "a", "scope": {"include": [7]}}, 422, "invalid_request", "scope.include.0"),
    "unknown field": ({"query": "a", "scopes": {}}, 422, "invalid_request", "scopes"),
    "unknown scope field": ({"query": "a", "scope": {"only": []}}, 422, "invalid_request", "scope.only"),
    "malformed JSON": ('{"query": ', 400, "invalid_json", None),
    "not UTF-8": (b'{"query": "\xff"}', 400, "invalid_json", None),
    "nesting without end": ("[" * 100_000, 400, "invalid_json", None),
    "no body": ("", 422, "invalid_request", None),
    "list as body": ("[]", 422, "invalid_request", None),
}

MESSAGES = [{"role": "user", "content": "rollback"}]


def saying(content):
    return {"model": "corecube", "messages": [{"role": "user", "content": content}]}


CHATS = {
    "empty message": (saying(""), 422, "empty_query", "messages"),
    "white space": (saying(" \n"), 422, "empty_query", "messages"),
    "null content": (saying(None), 422, "empty_query", "messages"),
    "no parts": (saying([]), 422, "empty_query", "messages"),
    "nothing but NUL": (saying("\0"), 422, "empty_query", "messages"),
    "100,000 characters": (saying(LONG), 422, "query_too_long", "messages"),
    "number as content": (saying(7), 422, "invalid_request", "messages.0.content.str"),
    "model with a lone surrogate": (
        '{"model": "\\ud800", "messages": [{"role": "user", "content": "a"}]}',
        404,
        "model_not_found",
        "model",
    ),
    "no messages": ({"model": "corecube"}, 422, "invalid_request", "messages"),
    "no user message": (
        {"model": "corecube", "messages": [{"role": "system", "content": "x"}]},
        422,
        "missing_message",
        "messages",
    ),
    "empty messages": ({"model": "corecube", "messages": []}, 422, "missing_message", "messages"),
    "no model": ({"messages": MESSAGES}, 422, "invalid_request", "model"),
    "unknown model": ({"model": "gpt-4o", "messages": MESSAGES}, 404, "model_not_found", "model"),
    "unknown preset": (
        {"model": "corecube", "messages": MESSAGES, "corecube": {"preset": "nope"}},
        404,
        "model_not_found",
        "corecube.preset",
    ),
    "unknown connection": (
        {"model": "corecube", "messages": MESSAGES, "corecube": {"scope": {"include": ["nope"]}}},
        404,
        "unknown_connection",
        "corecube.scope",
    ),
    "top_k 101": (
        {"model": "corecube", "messages": MESSAGES, "corecube": {"top_k": 101}},
        422,
        "invalid_request",
        "corecube.top_k",
    ),
    "unknown extension": (
        {"model": "corecube", "messages": MESSAGES, "corecube": {"scopes": {}}},
        422,
        "invalid_request",
        "corecube.scopes",
    ),
    "malformed JSON": ("{", 400, "invalid_json", None),
}


def assert_refused(response, status, code, param):
    error = response.json()["error"]
    assert (response.status_code, error["code"], error["param"]) == (status, code, param)
    assert error.keys() == {"message", "type", "param", "code"}
    assert error["type"] == "invalid_request_error"
    assert 0 < len(error["message"]) < 300
    assert response.headers["x-should-retry"] == "false"
    assert response.headers["x-request-id"]


@pytest.mark.parametrize("case", SEARCHES)
def test_a_bad_search_is_refused(world, post, case):
    body, *refusal = SEARCHES[case]
    assert_refused(post(SEARCH, body, world.key("bob")), *refusal)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("case", CHATS)
def test_a_bad_chat_is_refused_with_its_status_also_when_streamed(world, post, case, stream):
    body, *refusal = CHATS[case]
    body = {**body, "stream": stream} if isinstance(body, dict) else body
    assert_refused(post(CHAT, body, world.key("bob")), *refusal)


@pytest.mark.parametrize("query", ["rollback\\u0000", "rollback \\ud800", "\\udfff rollback"])
def test_what_no_store_can_hold_is_taken_out_of_a_query(world, post, query):
    found = post(SEARCH, f'{{"query": "{query}"}}', world.key("bob")).json()["hits"]
    assert "deployctl" in found[0]["text"]
    messages = f'[{{"role": "user", "content": "{query}"}}]'
    assert post(CHAT, f'{{"model": "corecube", "messages": {messages}}}', world.key("bob")).status_code == 200


@pytest.mark.parametrize("query", ["'; DROP TABLE x; --", "\\", "%s %(scope)s", "a & | ! <-> b", "🦀" * 400, "\u202e"])
def test_strange_queries_are_searched_for(world, post, query):
    assert post(SEARCH, {"query": query}, world.key("bob")).status_code == 200


@pytest.mark.parametrize(("path", "method"), [(SEARCH, "get"), (CHAT, "get"), ("/v1/models", "post")])
def test_another_method_is_refused(world, client, path, method):
    response = getattr(client, method)(path)
    assert_refused(response, 405, "method_not_allowed", None)
    assert response.headers["Allow"]


@pytest.mark.parametrize("path", ["/api/", "/api/v1", "/api/v1/nothing", "/v1/", "/v1/images", "/v1/models/a/b"])
def test_an_unknown_address_is_refused_in_the_same_shape(db, client, path):
    assert_refused(client.get(path), 404, "not_found", None)


def test_a_host_that_is_not_ours_is_refused_in_the_same_shape(db, client):
    assert_refused(client.get("/v1/models", headers={"host": "evil.example"}), 400, "bad_request", None)


def test_a_body_over_the_limit_is_refused(world, post, settings):
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 1000
    assert_refused(post(SEARCH, {"query": "x" * 2000}, world.key("bob")), 413, "request_too_large", None)


def test_a_broken_multipart_body_is_refused(world, client):
    headers = {"Authorization": f"Bearer {world.key('alice')}"}
    response = client.post(
        "/api/v1/connections/runbooks/uploads", b"nonsense", content_type="multipart/form-data", headers=headers
    )
    assert_refused(response, 400, "bad_request", None)


def fail_with(error):
    def failing(*args, **kwargs):
        raise error

    return failing


@pytest.mark.parametrize("path", [SEARCH, CHAT])
class TestFailures:
    def send(self, world, post, path):
        body = {"query": "rollback"} if path == SEARCH else {"model": "corecube", "messages": MESSAGES}
        return post(path, body, world.key("bob"))

    def test_a_missing_model_is_unavailable(self, world, post, path, monkeypatch):
        monkeypatch.setattr(active, "encoder", fail_with(ModelMissingError()))
        response = self.send(world, post, path)
        error = response.json()["error"]
        assert (response.status_code, error["code"], error["type"]) == (503, "model_missing", "server_error")
        assert "models fetch" in error["message"]

    def test_a_stopped_database_is_unavailable_also_inside_a_stage(self, world, post, path, monkeypatch):
        error = StageError("dense")
        error.__cause__ = OperationalError("the connection is closed")
        monkeypatch.setattr(search_request, "preset_named", fail_with(error))
        response = self.send(world, post, path)
        assert (response.status_code, response.json()["error"]["code"]) == (503, "database_unavailable")
        assert response.headers["Retry-After"]

    def test_an_unforeseen_error_says_nothing_of_its_cause(self, world, post, path, monkeypatch):
        monkeypatch.setattr(prepare, "scope_for", fail_with(RuntimeError("secret detail")))
        response = self.send(world, post, path)
        assert (response.status_code, response.json()["error"]["code"]) == (500, "internal_error")
        assert "secret" not in response.content.decode()
        assert "x-should-retry" not in response.headers
