"""Two admins at once: who comes second is told, and gets no server error."""

import pytest
from django.contrib.auth.models import Group
from django.db import DataError, IntegrityError
from django.test import Client

from corecube.compartments import change_compartment, create_compartment, delete_compartment
from corecube.connections import change_connection, create_connection
from corecube.database import atomic_change
from corecube.errors import ConflictError, NotFoundError
from corecube.grants import Holder, set_clearance
from corecube.keys import KeyTerms, issue_key
from corecube.models import AuditEvent, Compartment, Connection, Grant, User
from corecube.people import create_group, create_user, rename_group, rename_user, set_groups, set_membership
from corecube.scope import Sensitivity
from corecube.secrets import seal, unseal
from retrieval.ingest.services import delete_connection, queue_sync
from tests.race import race

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def world(governed):
    """Access needs no documents."""
    return governed


def test_what_is_wrong_otherwise_stays_an_error(world):
    with pytest.raises(IntegrityError), atomic_change("taken"):
        Grant.objects.create(compartment=world.runbooks.compartment, clearance=1)
    with pytest.raises(DataError), atomic_change("taken"):
        Group.objects.create(name="x" * 200)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda by: create_user(username="dora", actor=by), "username"),
        (lambda by: create_group(name="Auditors", actor=by), "a group"),
        (lambda by: create_compartment(name="Legal", description="", actor=by), "a compartment"),
        (lambda by: rename_group(Group.objects.get(name="engineers"), name="Auditors", actor=by), "a group"),
    ],
    ids=["user", "group", "compartment", "rename"],
)
def test_one_of_two_that_take_a_name_is_refused(world, make, words):
    first = (
        (lambda: create_group(name="Auditors", actor=world.alice)) if words == "a group" else lambda: make(world.alice)
    )
    lost = race(first, lambda: make(world.alice))
    assert isinstance(lost, ConflictError), lost
    assert words in str(lost)
    made = (
        User.objects.filter(username="dora"),
        Group.objects.filter(name="Auditors"),
        Compartment.objects.filter(slug="legal"),
    )
    assert sum(found.count() for found in made) == 1


@pytest.mark.parametrize(
    ("path", "sent", "field"),
    [
        ("/access/users/new/", {"username": "dora", "first_name": "Typed"}, "username"),
        ("/access/groups/new/", {"name": "dora"}, "name"),
        ("/access/compartments/new/", {"name": "dora", "description": "Typed"}, "name"),
        ("/connections/new/upload/", {"name": "Dora"}, "__all__"),
    ],
)
def test_the_form_comes_back_with_what_was_typed(world, path, sent, field):
    sent = {
        **sent,
        "sensitivity": 1,
        "trust": 2,
        "half_life_days": 180,
        "freshness_basis": "synced",
        "chunk_profile": "default",
    }
    sent["compartment"] = world.runbooks.compartment_id
    browsers = [Client(), Client()]
    for browser in browsers:
        browser.force_login(world.alice)
    answer = race(*(lambda it=it: it.post(path, sent) for it in browsers))
    assert answer.status_code == 422
    assert list(answer.context["form"].errors) == [field]
    assert f'value="{sent.get("name", "dora")}"' in answer.content.decode()


def test_of_two_connections_with_a_slug_one_is_refused(world):
    def make():
        fresh = Connection(kind="upload", name="Wiki", slug="wiki", compartment=world.runbooks.compartment)
        return create_connection(fresh, {}, actor=world.alice)

    lost = race(make, make)
    assert isinstance(lost, ConflictError)
    assert "slug" in str(lost)


def test_a_clearance_on_a_compartment_that_goes_is_not_found(world):
    legal = Compartment.objects.create(slug="legal", name="Legal")
    browser = Client()
    browser.force_login(world.alice)
    sent = {"compartment": "legal", "kind": "user", "holder": world.bob.pk, "clearance": "internal", "was": "none"}
    gone = lambda: delete_compartment(legal, actor=world.alice)  # noqa: E731
    assert race(gone, lambda: browser.post("/access/clearances/change/", sent)).status_code == 404
    assert not AuditEvent.objects.filter(action="grant.changed").exists()


def test_a_clearance_of_a_group_that_goes_is_not_given(world):
    group = Group.objects.create(name="auditors")

    def give():
        compartment = world.runbooks.compartment
        return set_clearance(
            holder=Holder.of(group),
            compartment=compartment,
            clearance=Sensitivity.PUBLIC,
            expected=None,
            actor=world.alice,
        )

    def go():
        # Holds what a grant's change waits for.
        Compartment.objects.select_for_update().get(pk=world.runbooks.compartment_id)
        Group.objects.filter(pk=group.pk).delete()

    assert isinstance(race(go, give), ConflictError)
    assert not AuditEvent.objects.filter(action="grant.changed").exists()


def test_a_connection_in_a_compartment_that_goes_is_not_made(world):
    legal = Compartment.objects.create(slug="legal", name="Legal")
    fresh = Connection(kind="upload", name="Wiki", slug="wiki", compartment=legal)
    gone = lambda: delete_compartment(Compartment.objects.get(slug="legal"), actor=world.alice)  # noqa: E731
    assert isinstance(race(gone, lambda: create_connection(fresh, {}, actor=world.alice)), ConflictError)
    assert not Connection.objects.filter(slug="wiki").exists()


def test_what_is_gone_is_not_changed(world):
    bob, group, runbooks = world.bob, Group.objects.get(), world.runbooks
    legal = Compartment.objects.create(slug="legal", name="Legal")
    for model, key in ((User, bob.pk), (Group, group.pk), (Compartment, legal.pk), (Connection, runbooks.pk)):
        model.objects.filter(pk=key).delete()
    by, terms = {"actor": world.alice}, KeyTerms(name="robot")
    runbooks.name = "Renamed"
    for change in (
        lambda: rename_user(bob, first_name="R", last_name="", **by),
        lambda: set_groups(bob, groups=[], **by),
        lambda: rename_group(group, name="other", **by),
        lambda: change_compartment(legal, name="other", description="", **by),
        lambda: delete_compartment(legal, **by),
        lambda: change_connection(runbooks, {}, **by),
        lambda: delete_connection(runbooks, **by),
    ):
        with pytest.raises(NotFoundError):
            change()
    for change in (
        lambda: set_membership(group, world.charlie, is_member=True, **by),
        lambda: set_groups(world.charlie, groups=[group], **by),
        lambda: issue_key(user=bob, terms=terms, **by),
        lambda: queue_sync(runbooks, **by),
    ):
        with pytest.raises(ConflictError):
            change()
    assert not AuditEvent.objects.exists()


def test_a_change_between_reading_and_storing_is_not_overwritten(world):
    was, mine = (Connection.objects.get(slug="vault") for _ in range(2))
    mine.trust = 1
    Connection.objects.filter(slug="vault").update(enabled=False)
    with pytest.raises(ConflictError):
        change_connection(mine, {}, actor=world.alice, expected=was)
    assert not Connection.objects.get(slug="vault").enabled


def test_a_change_leaves_a_secret_and_a_date_that_came_meanwhile(world):
    mine = Connection.objects.get(slug="vault")
    sealed = seal({"token": "new"})
    Connection.objects.filter(slug="vault").update(sealed_secrets=sealed, next_sync_at="2030-01-01T00:00Z")
    mine.trust = 1
    change_connection(mine, {}, actor=world.alice)
    stored = Connection.objects.get(slug="vault")
    assert (stored.trust, unseal(stored.sealed_secrets), stored.next_sync_at.year) == (1, {"token": "new"}, 2030)
