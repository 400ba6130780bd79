"""How programs and browsers sign in."""

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from corecube.models import ApiKey

SEARCH = "/api/v1/search"
BODY = {"query": "rollback"}
CHAT = {"model": "corecube", "messages": [{"role": "user", "content": "rollback"}]}


@pytest.fixture
def strict_client():
    """A browser that has to send CSRF tokens, as every real one."""
    return Client(enforce_csrf_checks=True)


def unusable_key(world, **changes):
    key, secret = ApiKey.issue(user=world.bob, name="old")
    ApiKey.objects.filter(pk=key.pk).update(**changes)
    return secret


def assert_refused(response):
    error = response.json()["error"]
    assert (response.status_code, error["code"], error["type"]) == (401, "invalid_api_key", "authentication_error")
    assert response.headers["x-should-retry"] == "false"
    assert response.headers["WWW-Authenticate"] == "Bearer"
    assert response.headers["x-request-id"]


@pytest.mark.usefixtures("world")
@pytest.mark.parametrize(("path", "body"), [(SEARCH, BODY), ("/v1/chat/completions", CHAT)])
class TestKeys:
    def test_a_key_is_its_user(self, world, post, path, body):
        assert post(path, body, world.key("bob")).status_code == 200

    def test_no_key(self, post, path, body):
        assert_refused(post(path, body))

    @pytest.mark.parametrize(
        "given", ["Bearer cc_unknown", "Bearer ", "Bearer", "Basic Ym9iOmI=", "cc_unknown", "Bearer \u00e9", ""]
    )
    def test_an_unknown_key(self, post, path, body, given):
        assert_refused(post(path, body, Authorization=given))

    def test_an_expired_key(self, world, post, path, body):
        assert_refused(post(path, body, unusable_key(world, expires_at=timezone.now() - timedelta(seconds=1))))

    def test_a_revoked_key(self, world, post, path, body):
        assert_refused(post(path, body, unusable_key(world, revoked_at=timezone.now())))

    def test_the_key_of_someone_who_has_left(self, world, post, path, body):
        secret = world.key("bob")
        world.bob.is_active = False
        world.bob.save()
        assert_refused(post(path, body, secret))


def test_the_scheme_is_read_in_any_case(world, post):
    assert post(SEARCH, BODY, Authorization=f"bearer {world.key('bob')}").status_code == 200


def test_last_use_is_written_at_most_once_a_minute(world, post):
    key, secret = ApiKey.issue(user=world.bob, name="busy")
    post(SEARCH, BODY, secret)
    key.refresh_from_db()
    first = key.last_used_at
    assert first is not None
    post(SEARCH, BODY, secret)
    key.refresh_from_db()
    assert key.last_used_at == first
    ApiKey.objects.filter(pk=key.pk).update(last_used_at=first - timedelta(seconds=61))
    post(SEARCH, BODY, secret)
    key.refresh_from_db()
    assert key.last_used_at > first - timedelta(seconds=61)


def test_a_session_may_read_without_a_token(world, strict_client):
    strict_client.force_login(world.bob)
    assert strict_client.get("/api/v1/connections").status_code == 200


def test_a_session_needs_its_csrf_token_to_post(world, strict_client):
    strict_client.force_login(world.bob)
    response = strict_client.post(SEARCH, BODY, content_type="application/json")
    assert (response.status_code, response.json()["error"]["code"]) == (403, "csrf_failed")


def test_a_session_with_its_csrf_token_may_post(world, strict_client):
    strict_client.force_login(world.bob)
    token = (
        strict_client.get("/login/?next=/").cookies.get("csrftoken")
        or strict_client.get("/api/docs").cookies["csrftoken"]
    )
    response = strict_client.post(SEARCH, BODY, content_type="application/json", headers={"X-CSRFToken": token.value})
    assert response.status_code == 200


def test_a_stranger_is_told_to_sign_in_and_not_about_csrf(world, strict_client):
    assert_refused(strict_client.post(SEARCH, BODY, content_type="application/json"))


def test_a_key_needs_no_csrf_token(world, strict_client):
    headers = {"Authorization": f"Bearer {world.key('bob')}"}
    assert strict_client.post(SEARCH, BODY, content_type="application/json", headers=headers).status_code == 200


def test_a_wrong_key_is_not_rescued_by_a_session(world, client, post):
    client.force_login(world.bob)
    assert_refused(post(SEARCH, BODY, "cc_wrong"))


def test_a_session_does_not_open_the_openai_api(world, client, get):
    client.force_login(world.bob)
    assert_refused(get("/v1/models"))


def test_a_key_for_other_presets_may_not_use_this_one(world, post):
    key, secret = ApiKey.issue(user=world.bob, name="narrow")
    key.presets = ["helix"]
    key.save()
    response = post(SEARCH, BODY, secret)
    assert (response.status_code, response.json()["error"]["code"]) == (403, "not_permitted")
