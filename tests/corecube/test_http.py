import re

import pytest
from django.db import OperationalError
from django.http import Http404, HttpResponse

from corecube.api import failure_response
from corecube.http import RequestIdMiddleware, wants_json
from corecube.refusals import RefusalMiddleware


@pytest.fixture
def policy(client, db):
    return client.get("/login/").headers["Content-Security-Policy"]


def directives(policy):
    return {part.split()[0]: part.split()[1:] for part in policy.split(";")}


def test_nothing_inline_and_nothing_from_elsewhere_may_run(policy):
    found = directives(policy)
    assert found["default-src"] == ["'none'"]
    assert found["script-src"] == found["style-src"] == ["'self'"]
    assert found["frame-ancestors"] == ["'none'"]
    assert "unsafe" not in policy


def test_the_header_is_well_formed(policy):
    assert policy == policy.strip()
    assert "\n" not in policy


def test_every_answer_has_an_id_of_its_own(client, db):
    first, second = (client.get("/login/").headers["x-request-id"] for _ in range(2))
    assert re.fullmatch(r"[0-9a-f]{32}", first)
    assert first != second


def test_an_id_that_a_client_sends_is_not_taken(client, db):
    assert client.get("/login/", headers={"x-request-id": "mine"}).headers["x-request-id"] != "mine"


def test_the_id_is_known_while_the_request_is_answered(rf):
    seen = []

    def view(request):
        seen.append(request.request_id)
        return HttpResponse()

    assert [RequestIdMiddleware(view)(rf.get("/")).headers["x-request-id"]] == seen


@pytest.mark.parametrize(
    "fail",
    [
        lambda request: RequestIdMiddleware(HttpResponse).process_exception(request, RuntimeError()),
        lambda request: RefusalMiddleware(HttpResponse).process_exception(request, OperationalError()),
        lambda request: failure_response(request, RuntimeError()),
        lambda request: failure_response(request, OperationalError()),
    ],
)
def test_the_log_of_a_failure_names_the_request(rf, caplog, fail):
    request = rf.get("/api/v1/search")
    request.request_id = "a1b2c3"
    fail(request)
    (record,) = caplog.records
    assert "id=a1b2c3 path=/api/v1/search" in record.getMessage()


def test_a_page_that_is_not_there_is_no_failure(rf, caplog):
    RequestIdMiddleware(HttpResponse).process_exception(rf.get("/"), Http404())
    assert caplog.records == []


@pytest.mark.parametrize(("path", "expected"), [("/api/v1/search", True), ("/v1/models", True), ("/", False)])
def test_programs_are_told_by_their_paths(rf, path, expected):
    assert wants_json(rf.get(path)) is expected


def test_a_browser_that_asks_for_the_usual_icon_is_sent_to_ours(client, db):
    assert client.get("/favicon.ico").headers["Location"] == "/static/favicon.svg"
