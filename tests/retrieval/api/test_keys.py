"""GET, POST and DELETE /api/v1/keys."""

from datetime import timedelta

import pytest
from django.utils import timezone

from corecube.models import ApiKey, AuditEvent, Compartment, Connection

PATH = "/api/v1/keys"


@pytest.fixture
def revoke(client):
    return lambda key_id, secret: client.delete(f"{PATH}/{key_id}", headers={"Authorization": f"Bearer {secret}"})


def test_a_secret_is_told_once(world, post, get):
    secret = world.key("bob")
    answer = post(PATH, {"name": " agent ", "requests_per_minute": 60}, secret)
    made = answer.json()
    assert (answer.status_code, answer.headers["Cache-Control"]) == (201, "no-store")
    assert ApiKey.objects.for_secret(made["secret"]).user == world.bob
    assert (made["name"], made["user"], made["state"], made["requests_per_minute"]) == ("agent", "bob", "active", 60)
    listed = get(PATH, secret)
    assert made["secret"] not in listed.content.decode()
    assert made["secret"] not in str(list(AuditEvent.objects.values()))
    assert listed.json()["keys"][0]["id"] == made["id"]
    assert get("/api/v1/connections", made["secret"]).status_code == 200


def test_one_lists_their_own_keys_and_an_admin_all(world, get):
    secrets = {name: world.key(name) for name in ("alice", "bob", "charlie")}
    assert {it["user"] for it in get(PATH, secrets["bob"]).json()["keys"]} == {"bob"}
    assert {it["user"] for it in get(PATH, secrets["alice"]).json()["keys"]} == {"alice", "bob", "charlie"}
    page = get(f"{PATH}?limit=1&offset=1", secrets["alice"]).json()
    assert (len(page["keys"]), page["total"]) == (1, 3)


def test_a_key_that_is_narrowed_sees_no_more(world, post, get):
    body = {"name": "narrow", "compartments": ["finance"], "max_sensitivity": "internal", "presets": ["corecube"]}
    made = post(PATH, body, world.key("alice")).json()
    assert (made["compartments"], made["max_sensitivity"], made["presets"]) == (["finance"], "internal", ["corecube"])
    seen = get("/api/v1/connections", made["secret"]).json()["connections"]
    assert [it["connection"] for it in seen] == ["ledger"]


LIMITS = {
    "compartment": lambda key: key.compartments.add(Compartment.objects.get(slug="finance")),
    "level": lambda key: ApiKey.objects.filter(pk=key.pk).update(max_sensitivity=1),
    "presets": lambda key: ApiKey.objects.filter(pk=key.pk).update(presets=["corecube"]),
    "end": lambda key: ApiKey.objects.filter(pk=key.pk).update(expires_at="2100-01-01T00:00:00Z"),
    "rate": lambda key: ApiKey.objects.filter(pk=key.pk).update(requests_per_minute=100),
}


@pytest.mark.parametrize("limit", LIMITS)
def test_a_limited_key_issues_none_and_knows_only_itself(world, post, get, revoke, limit):
    """Also an admin's: else it would widen itself."""
    other, _ = ApiKey.issue(user=world.alice, name="other")
    key, secret = ApiKey.issue(user=world.alice, name="limited")
    LIMITS[limit](key)
    assert post(PATH, {"name": "wider"}, secret).status_code == 403
    assert [it["id"] for it in get(PATH, secret).json()["keys"]] == [str(key.pk)]
    assert revoke(other.pk, secret).status_code == 404
    assert revoke(key.pk, secret).json()["state"] == "revoked"
    assert get(PATH, secret).status_code == 401
    assert ApiKey.objects.count() == 2


def test_only_an_admin_issues_for_others_and_lets_push(world, post):
    inbox = Connection.objects.create(slug="inbox", name="Inbox", kind="push", compartment=world.runbooks.compartment)
    bob, alice = world.key("bob"), world.key("alice")
    assert post(PATH, {"name": "x", "user": "alice"}, bob).status_code == 403
    assert post(PATH, {"name": "x", "push_connections": ["inbox"]}, bob).status_code == 403
    made = post(PATH, {"name": "x", "user": "bob", "push_connections": ["inbox"]}, alice).json()
    assert (made["user"], made["push_connections"]) == ("bob", ["inbox"])
    assert list(ApiKey.objects.get(pk=made["id"]).push_connections.all()) == [inbox]


def test_revoking(world, revoke, get):
    key, secret = ApiKey.issue(user=world.bob, name="agent")
    assert revoke(key.pk, world.key("charlie")).status_code == 404
    assert get(PATH, secret).status_code == 200
    assert revoke(key.pk, world.key("alice")).json()["state"] == "revoked"
    assert get(PATH, secret).status_code == 401
    first = ApiKey.objects.get(pk=key.pk).revoked_at
    assert revoke(key.pk, world.key("bob")).json()["state"] == "revoked"
    assert ApiKey.objects.get(pk=key.pk).revoked_at == first


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({}, 422),
        ({"name": " "}, 422),
        ({"name": "x" * 121}, 422),
        ({"name": "x", "requests_per_minute": 0}, 422),
        ({"name": "x", "expires_at": "2020-01-01T00:00:00"}, 422),
        ({"name": "x", "max_sensitivity": "secret"}, 422),
        ({"name": "x", "presets": ["nope"]}, 404),
        ({"name": "x", "is_staff": True}, 422),
    ],
)
def test_what_no_key_can_be(world, post, body, status):
    assert post(PATH, body, world.key("bob")).status_code == status


@pytest.mark.parametrize("slug", ["finance", "nothing", "\0"])
def test_a_compartment_out_of_sight_is_as_none(world, post, slug):
    answer = post(PATH, {"name": "x", "compartments": [slug]}, world.key("bob"))
    assert (answer.status_code, answer.json()["error"]["message"]) == (
        404,
        "No compartment with that name is visible to you.",
    )


def test_a_key_ends_after_90_days_unless_its_end_is_given(world, post):
    secret = world.key("bob")
    ends = {
        name: ApiKey.objects.get(pk=post(PATH, {"name": name, **body}, secret).json()["id"]).expires_at
        for name, body in {
            "left out": {},
            "never": {"expires_at": None},
            "given": {"expires_at": "2100-01-01T00:00:00Z"},
        }.items()
    }
    assert timedelta(days=89) < ends["left out"] - timezone.now() <= timedelta(days=90)
    assert (ends["never"], ends["given"].year) == (None, 2100)


def test_the_description_tells_of_the_end(client):
    fields = client.get("/api/openapi.json").json()["components"]["schemas"]["KeyIn"]["properties"]
    assert "90 days" in fields["expires_at"]["description"]
    assert "default" not in fields["expires_at"]
