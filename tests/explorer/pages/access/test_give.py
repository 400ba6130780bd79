"""Giving groups and users access in one form."""

import pytest
from django.contrib.auth.models import Group
from lxml import html

from corecube.access import scope_for
from corecube.models import AuditEvent, Compartment, Grant, User

PAGE = "/access/give/"


@pytest.fixture
def world(governed):
    """Access needs no documents."""
    return governed


@pytest.fixture
def alice(browse):
    return browse("alice")


@pytest.fixture
def sent(world):
    """Return what the form sends: the engineers, cleared up to confidential for Finance."""
    finance = Compartment.objects.get(slug="finance")
    engineers = Group.objects.get(name="engineers")

    def fields(**changes):
        return {"groups": [engineers.pk], "compartments": [finance.pk], "clearance": "2", **changes}

    return fields


def boxes_of(page):
    return html.fromstring(page.content).xpath("//input[@name='users']")


def seen(world, name):
    return [it.connection.slug for it in scope_for(world.principal(name)).included]


@pytest.mark.parametrize("path", [PAGE, "/access/give/preview/", "/access/users/new/access/"])
def test_it_does_not_exist_for_anyone_else(browse, sent, path):
    assert browse("bob").get(path).status_code in {404, 405}
    assert browse("bob").post(path, sent()).status_code == 404
    assert not AuditEvent.objects.filter(action="grant.changed").exists()


@pytest.mark.parametrize("path", ["/access/give/users/?named=a", "/access/users/names/?as=a"])
def test_nobody_else_finds_users(browse, path):
    assert browse("alice").get(path).status_code == 200
    assert browse("bob").get(path).status_code == 404


def test_the_preview_names_who_gains_what_and_changes_nothing(alice, world, sent):
    page = alice.post("/access/give/preview/", sent()).content.decode()
    assert '<strong>bob</strong> <span class="soft">Ledger</span>' in page
    assert seen(world, "bob") == ["runbooks"]
    assert not AuditEvent.objects.filter(action="grant.changed").exists()


def test_what_was_previewed_is_given_with_one_press(alice, world, sent):
    token = alice.post("/access/give/preview/", sent()).context["effect"].token
    answer = alice.post(PAGE, sent(seen=token))
    group = Group.objects.get(name="engineers")
    assert answer.headers["Location"] == f"/access/groups/{group.pk}/"
    assert seen(world, "bob") == ["ledger", "runbooks"]
    assert AuditEvent.objects.get(action="grant.changed").actor == world.alice


def test_without_a_preview_the_effect_is_shown_first(alice, world, sent):
    page = alice.post(PAGE, sent())
    assert "Give access to 1 user" in page.content.decode()
    assert seen(world, "bob") == ["runbooks"]
    alice.post(PAGE, sent(seen=page.context["effect"].token))
    assert seen(world, "bob") == ["ledger", "runbooks"]


def test_a_clearance_below_all_of_a_compartment_is_explained(alice, sent):
    why = "Finance has no connection below internal. Select Internal to give access to it."
    for path in ("/access/give/preview/", "/access/users/new/access/"):
        assert why in alice.post(path, sent(clearance="0")).content.decode()
        assert "has no connection below" not in alice.post(path, sent(clearance="1")).content.decode()


def test_a_higher_clearance_stays(alice, world, sent):
    engineers, engineering = Group.objects.get(name="engineers"), Compartment.objects.get(slug="engineering")
    alice.post(PAGE, sent(compartments=[engineering.pk], clearance="0"))
    assert Grant.objects.get(group=engineers, compartment=engineering).clearance == 1


def test_somebody_and_something_have_to_be_selected(alice):
    page = alice.post(PAGE, {"clearance": "1"})
    assert page.status_code == 422
    assert set(page.context["form"].errors) == {"groups", "compartments"}
    assert 'href="#id_groups"' in page.content.decode()


def test_a_link_preselects(alice, world):
    finance = Compartment.objects.get(slug="finance")
    form = alice.get(PAGE, {"compartment": finance.pk, "user": world.bob.pk, "group": "x"}).context["form"]
    assert (form["compartments"].value(), form["users"].value()) == ([finance.pk], [world.bob.pk])


def test_a_link_preselects_what_gives_access_to_a_connection(alice, world):
    form = alice.get(PAGE, {"connection": "vault"}).context["form"]
    assert (form["compartments"].value(), form["clearance"].value()) == ([world.vault.compartment_id], 3)
    assert alice.get(PAGE, {"connection": "no\0where"}).context["form"]["compartments"].value() == []


def test_a_new_user_starts_with_groups_and_clearances(alice, sent):
    given = sent(username="dora", clearance="1")
    assert alice.post("/access/users/new/access/", given).context["visible"] == ("Ledger", "Runbooks")
    page = alice.post("/access/users/new/", given)
    dora = User.objects.get(username="dora")
    assert [it.name for it in dora.groups.all()] == ["engineers"]
    assert [(it.compartment.slug, it.clearance) for it in dora.grants.all()] == [("finance", 1)]
    assert "?as=dora&amp;tab=scope" in page.content.decode()


def test_the_membership_of_a_group_is_confirmed(alice, world):
    engineers = Group.objects.get(name="engineers")
    address, sent = f"/access/groups/{engineers.pk}/member/", {"username": "charlie", "member": "yes"}
    page = alice.post(address, sent)
    assert "<strong>charlie</strong>" in page.content.decode()
    assert not world.charlie.groups.exists()
    alice.post(address, {**sent, "seen": page.context["effect"].token})
    assert world.charlie.groups.get() == engineers


def test_users_are_found_by_name_and_the_checked_ones_stay(alice, world):
    found = alice.get("/access/give/users/", {"named": "char", "users": [world.bob.pk, "no number"]})
    assert [(it.get("value"), "checked" in it.attrib) for it in boxes_of(found)] == [
        (str(world.bob.pk), True),
        (str(world.charlie.pk), False),
    ]
    assert "No users found." in alice.get("/access/give/users/", {"named": "nobody"}).content.decode()


def test_a_refused_form_shows_the_checked_users(alice, world, sent):
    page = alice.post(PAGE, sent(users=[world.charlie.pk], compartments=[]))
    assert page.status_code == 422
    assert [it.get("value") for it in boxes_of(page) if "checked" in it.attrib] == [str(world.charlie.pk)]
