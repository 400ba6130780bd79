"""Pages of other origins: those on the list may call the APIs with a key, no other page and nothing else."""

import pytest

PAGE = "https://chat.example.org"
QUESTION = {"model": "corecube", "messages": [{"role": "user", "content": "rollback"}]}


@pytest.fixture(autouse=True)
def listed(settings):
    settings.CORS_ALLOWED_ORIGINS = [PAGE]


def preflight(client, path, origin=PAGE):
    asked = {"Origin": origin, "Access-Control-Request-Method": "POST"}
    asked["Access-Control-Request-Headers"] = "authorization,content-type,x-stainless-lang"
    return client.options(path, headers=asked)


@pytest.mark.parametrize(
    "path", ["/v1/chat/completions", "/v2/rerank", "/api/v1/search", "/api/dify/retrieval", "/mcp"]
)
def test_a_listed_page_is_allowed_to_send_a_key(db, client, path):
    answer = preflight(client, path)
    assert (answer.status_code, answer.headers["Access-Control-Allow-Origin"]) == (200, PAGE)
    allowed = answer.headers["Access-Control-Allow-Headers"].split(", ")
    assert {"authorization", "content-type", "x-stainless-lang", "x-corecube-user"} <= {*allowed}
    # Without credentials no session of the console is ever sent along.
    assert "Access-Control-Allow-Credentials" not in answer.headers


def test_its_requests_can_be_read_errors_too(world, post):
    for secret, status in ((world.key("bob"), 200), ("cc_wrong", 401)):
        answer = post("/v1/chat/completions", QUESTION, secret, Origin=PAGE)
        assert (answer.status_code, answer.headers["Access-Control-Allow-Origin"]) == (status, PAGE)
        assert "x-request-id" in answer.headers["Access-Control-Expose-Headers"]


@pytest.mark.parametrize("path", ["/explorer/", "/login/", "/admin/", "/metrics"])
def test_pages_are_read_from_nowhere_else(db, client, path):
    assert "Access-Control-Allow-Origin" not in preflight(client, path).headers


@pytest.mark.parametrize("origin", ["https://evil.example.org", "http://chat.example.org", "null"])
def test_no_other_page_is_allowed(world, client, post, origin):
    assert "Access-Control-Allow-Origin" not in preflight(client, "/v1/chat/completions", origin).headers
    answer = post("/v1/chat/completions", QUESTION, world.key("bob"), Origin=origin)
    assert "Access-Control-Allow-Origin" not in answer.headers
