"""A key that sends more than it may."""

import pytest

from corecube.models import ApiKey


@pytest.fixture
def world(governed):
    """Access needs no documents."""
    return governed


@pytest.fixture
def send(client, world):
    secret = world.key("bob")
    ApiKey.objects.update(requests_per_minute=2)
    return lambda path: client.get(path, headers={"Authorization": f"Bearer {secret}"})


def test_it_is_refused_with_the_time_to_wait_on_both_apis_together(send):
    assert [send(path).status_code for path in ("/api/v1/presets", "/v1/models")] == [200, 200]
    for path in ("/api/v1/presets", "/v1/models"):
        refused = send(path)
        assert refused.status_code == 429
        assert refused.json()["error"]["type"] == "rate_limit_error"
        assert refused.json()["error"]["code"] == "rate_limit_exceeded"
        assert 25 <= int(refused.headers["Retry-After"]) <= 30
        assert "x-should-retry" not in refused.headers


def test_other_keys_are_not_held_up(send, client, world):
    for _ in range(3):
        send("/v1/models")
    other = world.key("bob")
    assert client.get("/v1/models", headers={"Authorization": f"Bearer {other}"}).status_code == 200
