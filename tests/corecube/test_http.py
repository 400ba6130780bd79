import re

import pytest

from corecube.http import wants_json


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


@pytest.mark.parametrize(("path", "expected"), [("/api/v1/search", True), ("/v1/models", True), ("/", False)])
def test_programs_are_told_by_their_paths(rf, path, expected):
    assert wants_json(rf.get(path)) is expected
