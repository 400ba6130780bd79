"""Changing clearances."""

import pytest
from django.contrib.auth.models import Group

from corecube.access import scope_for
from corecube.errors import ConflictError
from corecube.grants import Holder, level_named, set_clearance
from corecube.models import AuditEvent, Compartment, Grant
from corecube.scope import Sensitivity


@pytest.fixture
def world(governed):
    """Access needs no documents."""
    return governed


@pytest.fixture
def engineers(world):
    return Holder.of(Group.objects.get(name="engineers"))


@pytest.fixture
def engineering(world):
    return Compartment.objects.get(slug="engineering")


def seen(world, name):
    return [it.connection.slug for it in scope_for(world.principal(name)).included]


def test_a_wider_clearance_opens_what_it_reaches(world, engineers, engineering):
    change = set_clearance(
        holder=engineers,
        compartment=engineering,
        clearance=Sensitivity.RESTRICTED,
        expected=Sensitivity.INTERNAL,
        actor=world.alice,
    )
    assert seen(world, "bob") == ["runbooks", "vault"]
    assert change.reach.gained == {"bob": 1}
    assert change.reach.lost == {}


def test_taking_a_grant_away_closes_everything(world, engineers, engineering):
    change = set_clearance(
        holder=engineers, compartment=engineering, clearance=None, expected=Sensitivity.INTERNAL, actor=world.alice
    )
    assert seen(world, "bob") == []
    assert change.reach.lost == {"bob": 1}
    assert not Grant.objects.filter(group__name="engineers").exists()


def test_a_user_can_be_given_a_first_grant(world):
    finance = Compartment.objects.get(slug="finance")
    set_clearance(
        holder=Holder.of(world.charlie),
        compartment=finance,
        clearance=Sensitivity.INTERNAL,
        expected=None,
        actor=world.alice,
    )
    assert seen(world, "charlie") == ["ledger"]


def test_it_is_logged_with_before_and_after(world, engineers, engineering):
    set_clearance(
        holder=engineers,
        compartment=engineering,
        clearance=Sensitivity.RESTRICTED,
        expected=Sensitivity.INTERNAL,
        actor=world.alice,
    )
    event = AuditEvent.objects.get(action="grant.changed")
    assert (event.actor, event.subject) == (world.alice, "group engineers on engineering")
    assert event.details == {
        "compartment": "engineering",
        "holder": {"kind": "group", "id": engineers.id},
        "before": "internal",
        "after": "restricted",
        "gained": 1,
        "lost": 0,
    }


@pytest.mark.parametrize("was", [None, Sensitivity.PUBLIC])
def test_a_change_made_from_something_else_is_refused(world, engineers, engineering, was):
    with pytest.raises(ConflictError):
        set_clearance(holder=engineers, compartment=engineering, clearance=None, expected=was, actor=world.alice)
    assert seen(world, "bob") == ["runbooks"]
    assert not AuditEvent.objects.filter(action="grant.changed").exists()


def test_the_same_clearance_again_changes_and_logs_nothing(world, engineers, engineering):
    same = Sensitivity.INTERNAL
    change = set_clearance(holder=engineers, compartment=engineering, clearance=same, expected=same, actor=world.alice)
    assert change.event is None
    assert not AuditEvent.objects.filter(action="grant.changed").exists()


def test_a_clearance_that_others_hold_anyway_changes_nobodys_sight(world, engineering):
    change = set_clearance(
        holder=Holder.of(world.bob),
        compartment=engineering,
        clearance=Sensitivity.INTERNAL,
        expected=None,
        actor=world.alice,
    )
    assert (change.reach.gained, change.reach.lost) == ({}, {})


def test_names_of_levels():
    assert level_named("none") is None
    assert level_named("restricted") is Sensitivity.RESTRICTED
    with pytest.raises(KeyError):
        level_named("secret")
