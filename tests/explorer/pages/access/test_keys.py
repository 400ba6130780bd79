"""API keys in the console."""

import re
from datetime import timedelta

import pytest
from django.contrib.sessions.models import Session
from django.utils import timezone

from corecube.access import Principal, scope_for
from corecube.models import ApiKey, AuditEvent, Compartment, Connection

NEW = "/keys/new/"


@pytest.fixture
def world(governed):
    """Access needs no documents."""
    return governed


def fields(**changes):
    return {"name": "robot", "lifetime": "30", "max_sensitivity": "", "requests_per_minute": "", **changes}


def secret_in(answer):
    return re.search(r"cc_[\w-]{43}", answer.content.decode()).group()


def test_a_secret_is_shown_once_and_kept_nowhere(browse):
    bob = browse("bob")
    answer = bob.post(NEW, fields())
    secret = secret_in(answer)
    assert answer.status_code == 200
    assert "no-store" in answer.headers["Cache-Control"]
    assert ApiKey.objects.for_secret(secret).user.username == "bob"
    assert secret not in bob.get("/keys/").content.decode()
    assert not any(secret in str(session.get_decoded()) for session in Session.objects.all())
    assert not any(secret in cookie.value for cookie in answer.cookies.values())
    assert secret not in str(AuditEvent.objects.values())


def test_a_key_is_as_narrow_as_it_was_made(browse, world):
    finance = Compartment.objects.get(slug="finance")
    answer = browse("alice").post(
        NEW, fields(user="alice", compartments=[finance.pk], presets=["corecube"], requests_per_minute="60")
    )
    key = ApiKey.objects.for_secret(secret_in(answer))
    assert [it.connection.slug for it in scope_for(Principal(key.user, key)).included] == ["ledger"]
    assert (key.presets, key.requests_per_minute) == (["corecube"], 60)
    assert timedelta(days=29) < key.expires_at - timezone.now() <= timedelta(days=30)


def test_an_admin_issues_keys_for_others_and_says_where_they_push(browse, world):
    inbox = Connection.objects.create(slug="inbox", name="Inbox", kind="push", compartment=world.runbooks.compartment)
    page = browse("alice").get(NEW, {"user": "bob"}).content.decode()
    assert '<option value="bob" selected>' in page
    browse("alice").post(NEW, fields(user="bob", push_connections=[inbox.pk], lifetime=""))
    key = ApiKey.objects.get()
    assert (key.user, key.expires_at, list(key.push_connections.all())) == (world.bob, None, [inbox])


def test_a_user_cannot_issue_for_others_or_push(browse, world):
    inbox = Connection.objects.create(slug="inbox", name="Inbox", kind="push", compartment=world.runbooks.compartment)
    browse("bob").post(NEW, fields(user="alice", push_connections=[inbox.pk]))
    key = ApiKey.objects.get()
    assert (key.user, key.push_connections.count()) == (world.bob, 0)


def test_a_user_learns_of_no_compartment_beyond_their_scope(browse, world):
    page = browse("bob").get(NEW).content.decode()
    assert "Engineering" in page
    for hidden in ("Finance", "Inbox", "alice", "charlie"):
        assert hidden not in page
    finance = Compartment.objects.get(slug="finance")
    answers = [browse("bob").post(NEW, fields(compartments=[pk])) for pk in (finance.pk, 999999)]
    texts = [re.sub(r"\d{3,}|csrf\S+ value=\S+|X-CSRF\S+ \S+", "", it.content.decode()) for it in answers]
    assert [it.status_code for it in answers] == [422, 422]
    assert "Finance" not in texts[0]
    assert not ApiKey.objects.exists()


def test_charlie_who_sees_nothing_is_offered_nothing(browse):
    page = browse("charlie").get(NEW).content.decode()
    assert "No compartments available." in page
    assert "Engineering" not in page


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": ""},
        {"lifetime": "31"},
        {"max_sensitivity": "9"},
        {"requests_per_minute": "0"},
        {"presets": ["nothing"]},
    ],
)
def test_what_cannot_be_is_not_issued(browse, wrong):
    assert browse("bob").post(NEW, fields(**wrong)).status_code == 422
    assert not ApiKey.objects.exists()


def test_revoking_asks_first(browse, world):
    key, secret = ApiKey.issue(user=world.bob, name="robot")
    bob, path = browse("bob"), f"/keys/{key.pk}/revoke/"
    assert "Revoke robot?" in bob.get(path).content.decode()
    assert ApiKey.objects.for_secret(secret)
    assert bob.post(path).headers["Location"] == "/keys/"
    assert ApiKey.objects.for_secret(secret) is None
    assert "already" in bob.get(path).content.decode()


@pytest.mark.parametrize("name", ["charlie", "bob"])
def test_someone_elses_key_does_not_exist(browse, world, name):
    key, secret = ApiKey.issue(user=world.alice, name="secret project")
    assert browse(name).get(f"/keys/{key.pk}/revoke/").status_code == 404
    assert browse(name).post(f"/keys/{key.pk}/revoke/").status_code == 404
    assert ApiKey.objects.for_secret(secret)
    assert "secret project" not in browse(name).get("/keys/").content.decode()


def test_an_admin_revokes_anybodys(browse, world):
    key, secret = ApiKey.issue(user=world.bob, name="robot")
    assert browse("alice").post(f"/keys/{key.pk}/revoke/").headers["Location"] == "/access/keys/"
    assert ApiKey.objects.for_secret(secret) is None


def test_keys_that_are_over_stand_apart(browse, world):
    now = timezone.now()
    for name, changes in (
        ("current", {}),
        ("revoked", {"revoked_at": now}),
        ("expired", {"expires_at": now - timedelta(days=1)}),
    ):
        key, _ = ApiKey.issue(user=world.bob, name=name)
        ApiKey.objects.filter(pk=key.pk).update(**changes)
    for client, path in ((browse("alice"), "/access/keys/"), (browse("bob"), "/keys/")):
        context = client.get(path).context
        assert [row["key"].name for row in context["rows"]] == ["current"]
        assert sorted(row["key"].name for row in context["ended"]) == ["expired", "revoked"]


def test_the_owner_of_a_key_is_told_no_name_that_an_admin_put_on_it(browse, world):
    key, _ = ApiKey.issue(user=world.bob, name="robot")
    key.compartments.add(Compartment.objects.get(slug="finance"))
    key.push_connections.add(world.ledger)
    for path in ("/keys/", f"/keys/{key.pk}/revoke/"):
        page = browse("bob").get(path).content.decode()
        assert "robot" in page
        assert "Finance" not in page
        assert "Ledger" not in page
