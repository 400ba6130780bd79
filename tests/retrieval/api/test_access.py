"""GET /api/v1/access/check."""

import uuid

import pytest
from django.db import connection as database
from django.test import Client
from django.utils import timezone

from corecube.models import ApiKey, AuditEvent, Compartment
from retrieval.models import Document
from tests.race import race

PATH = "/api/v1/access/check"


@pytest.fixture
def world(governed):
    """One document in each connection is enough."""
    for number, connection in enumerate((governed.runbooks, governed.vault, governed.ledger)):
        Document.objects.create(
            id=uuid.UUID(int=number + 1), connection=connection, title="x", byte_size=1, synced_at=timezone.now()
        )
    return governed


@pytest.fixture
def ask(client, world):
    """Return a function that asks with a key of one of the cast."""

    def asked(name, secret=None, **parameters):
        bearer = f"Bearer {secret or world.key(name)}"
        return client.get(PATH, parameters, headers={"Authorization": bearer})

    return asked


def document(connection):
    return Document.objects.filter(connection=connection).first().pk


def test_a_document_in_scope_with_its_rule(ask, world):
    answer = ask("bob", document=document(world.runbooks))
    assert answer.json() == {
        "hasAccess": True,
        "reason": "allowed",
        "rule": {
            "compartment": "Engineering",
            "through": "group engineers",
            "clearance": "internal",
            "sensitivity": "internal",
        },
    }
    assert not AuditEvent.objects.filter(action="access.checked").exists()


@pytest.mark.parametrize(
    ("connection", "reason", "through", "clearance"),
    [("vault", "sensitivity", "group engineers", "internal"), ("ledger", "no_grant", None, None)],
)
def test_an_admin_is_told_why_somebody_does_not_see_it(ask, world, connection, reason, through, clearance):
    answer = ask("alice", user="bob", connection=connection).json()
    assert (answer["hasAccess"], answer["reason"]) == (False, reason)
    assert (answer["rule"]["through"], answer["rule"]["clearance"]) == (through, clearance)
    event = AuditEvent.objects.get(action="access.checked")
    assert (event.actor, event.subject, event.details) == (world.alice, "bob", {"connection": connection})


def test_asking_about_a_document_logs_its_id(ask, world):
    chosen = document(world.vault)
    assert ask("alice", user="bob", document=chosen).json()["reason"] == "sensitivity"
    assert AuditEvent.objects.get(action="access.checked").details == {"document": str(chosen)}


def test_what_is_outside_the_scope_does_not_exist(ask, world):
    hidden = ask("bob", document=document(world.vault))
    unknown = ask("bob", document="00000000-0000-0000-0000-00000000ffff")
    assert (hidden.status_code, unknown.status_code) == (404, 404)
    assert hidden.content == unknown.content
    assert ask("bob", connection="ledger").content == ask("bob", connection="nowhere").content
    assert ask("bob", connection="ledger").status_code == 404


@pytest.mark.parametrize("user", ["alice", "charlie", "nobody"])
def test_only_an_admin_asks_about_others_whether_or_not_they_exist(ask, world, user):
    answer = ask("bob", user=user, document=document(world.runbooks))
    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "not_permitted")
    assert not AuditEvent.objects.filter(action="access.checked").exists()


def test_naming_oneself_is_asking_for_oneself(ask, world):
    assert ask("bob", user="bob", connection="runbooks").json()["hasAccess"]


def test_an_admin_without_a_grant_learns_why(ask, world):
    world.alice.grants.all().delete()
    assert ask("alice", connection="vault").json()["reason"] == "no_grant"


def test_an_admins_narrowed_key_asks_only_within_its_narrowing(ask, world):
    key, secret = ApiKey.issue(user=world.alice, name="robot")
    key.compartments.add(Compartment.objects.get(slug="finance"))
    assert ask("alice", secret, user="bob", connection="ledger").json()["reason"] == "no_grant"
    assert ask("alice", secret, user="bob", connection="vault").status_code == 404
    assert ask("alice", secret, user="bob", document=document(world.vault)).status_code == 404


def test_a_disabled_connection(ask, world):
    world.runbooks.enabled = False
    world.runbooks.save()
    assert ask("alice", user="bob", connection="runbooks").json()["reason"] == "disabled"
    assert ask("bob", connection="runbooks").status_code == 404


@pytest.mark.parametrize(
    ("parameters", "status"),
    [
        ({}, 422),
        ({"connection": "x", "document": "00000000-0000-0000-0000-00000000ffff"}, 422),
        ({"document": "x"}, 422),
    ],
)
def test_exactly_one_thing_is_asked_about(ask, parameters, status):
    assert ask("bob", **parameters).status_code == status


def test_an_unknown_user_is_not_found(ask):
    assert ask("alice", user="nobody\0", connection="vault").json()["error"]["code"] == "unknown_principal"


def test_a_stranger_is_asked_for_a_key(client, world):
    assert client.get(PATH, {"connection": "runbooks"}).status_code == 401


@pytest.mark.django_db(transaction=True)
def test_a_connection_that_goes_while_it_is_asked_about_is_not_found(world):
    headers = {"Authorization": f"Bearer {world.key('alice')}"}
    ask = lambda: Client().get(PATH, {"connection": "vault", "user": "bob"}, headers=headers)  # noqa: E731

    def delete():
        # The question waits here, between finding the connection and reading the rules.
        with database.cursor() as cursor:
            cursor.execute("LOCK TABLE corecube_auditevent IN ACCESS EXCLUSIVE MODE")
        world.vault.delete()

    answer = race(delete, ask)
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "not_found")
