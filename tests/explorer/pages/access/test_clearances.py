"""The matrix of clearances, edited in place."""

import pytest
from django.contrib.auth.models import Group

from corecube.access import scope_for
from corecube.models import AuditEvent, Compartment, Grant

PAGE = "/access/clearances/"
CHANGE = "/access/clearances/change/"


@pytest.fixture
def world(governed):
    """Access needs no documents."""
    return governed


@pytest.fixture
def engineers(world):
    return Group.objects.get(name="engineers")


@pytest.fixture
def sent(engineers):
    """Return what a cell sends: the engineers' clearance on Engineering, which is internal."""

    def fields(**changes):
        cell = {"compartment": "engineering", "kind": "group", "holder": engineers.pk, "was": "internal"}
        return {**cell, "clearance": "restricted", "origin": "clearances", **changes}

    return fields


def confirmed(client, sent, headers):
    """Send a change, and again with what its confirmation shows; return the last answer."""
    answer = client.post(CHANGE, sent, headers=headers)
    effect = answer.context.get("effect") if answer.context else None
    return client.post(CHANGE, {**sent, "seen": effect.token}, headers=headers) if effect else answer


def seen(world, name):
    return [it.connection.slug for it in scope_for(world.principal(name)).included]


def test_every_group_and_only_users_with_grants_have_a_row(browse, engineers, world):
    page = browse("alice").get(PAGE).content.decode()
    assert f'id="cell-group-{engineers.pk}-finance"' in page
    assert f'id="cell-user-{world.alice.pk}-finance"' in page
    assert f'id="cell-user-{world.bob.pk}-finance"' not in page


def test_a_change_of_access_is_saved_only_when_its_effect_is_confirmed(browse, world, sent, htmx, engineers):
    admin = browse("alice")
    page = admin.post(CHANGE, sent(), headers=htmx).content.decode()
    assert "Gains access" in page
    assert "<strong>bob</strong>" in page
    assert "Vault" in page
    assert '<option value="internal" selected>' in page
    assert seen(world, "bob") == ["runbooks"]
    # What was confirmed is another effect than the change has now.
    other = admin.post(CHANGE, sent(clearance="none"), headers=htmx).context["effect"].token
    assert admin.post(CHANGE, sent(seen=other), headers=htmx).context["effect"].gaining == (("bob", ("Vault",)),)
    assert not AuditEvent.objects.filter(action="grant.changed").exists()


def test_a_change_of_nobodys_access_is_saved_at_once(browse, sent, htmx, engineers):
    browse("alice").post(CHANGE, sent(clearance="confidential"), headers=htmx)
    assert Grant.objects.get(group=engineers).clearance == 2


def test_a_confirmed_change_says_what_it_does(browse, world, sent, htmx, engineers):
    answer = confirmed(browse("alice"), sent(), htmx)
    page = answer.content.decode()
    assert answer.status_code == 200
    assert seen(world, "bob") == ["runbooks", "vault"]
    said = "group engineers on Engineering: internal → restricted. bob gains access to 1 connection."
    assert f'<p id="announcement" hx-swap-oob="innerHTML">{said}</p>' in page
    assert f'id="level-group-{engineers.pk}-engineering"' in page
    assert '<option value="restricted" selected>' in page
    assert "Undo" in page


def test_undo_goes_back(browse, world, sent, htmx):
    admin = browse("alice")
    undo = confirmed(admin, sent(), htmx).context["change"].undo_seen
    admin.post(CHANGE, sent(was="restricted", clearance="internal", seen=undo), headers=htmx)
    assert seen(world, "bob") == ["runbooks"]
    steps = AuditEvent.objects.filter(action="grant.changed").order_by("pk").values_list("details__after", flat=True)
    assert list(steps) == ["restricted", "internal"]


def test_none_takes_the_grant_away(browse, world, sent, htmx):
    answer = confirmed(browse("alice"), sent(clearance="none"), htmx)
    assert "bob loses access to 1 connection." in answer.content.decode()
    assert not Grant.objects.filter(group__name="engineers").exists()


def test_a_change_from_a_stale_page_is_refused_and_shows_what_is(browse, world, sent, htmx):
    answer = browse("alice").post(CHANGE, sent(was="public"), headers=htmx)
    page = answer.content.decode()
    assert answer.status_code == 409
    assert '<option value="internal" selected>' in page
    assert "was changed in the meantime" in page
    assert seen(world, "bob") == ["runbooks"]


def test_without_a_script_it_goes_back_to_where_it_came_from(browse, world, sent, engineers):
    admin = browse("alice")
    for origin, path in (
        ("clearances", PAGE),
        ("holder", f"/access/groups/{engineers.pk}/"),
        ("compartment", "/access/compartments/engineering/"),
    ):
        there = confirmed(admin, sent(origin=origin), {}).headers["Location"]
        event = AuditEvent.objects.filter(action="grant.changed").latest("pk")
        assert there == f"{path}?changed={event.pk}"
        page = admin.get(there).content.decode()
        assert "bob gains access to 1 connection." in page
        assert 'id="undo"' in page
        confirmed(admin, sent(was="restricted", clearance="internal"), {})


@pytest.mark.parametrize("changed", ["0", "x", "9" * 40])
def test_an_address_that_names_no_change_is_the_plain_page(browse, changed):
    page = browse("alice").get(PAGE, {"changed": changed})
    assert page.status_code == 200
    assert 'id="undo"' not in page.content.decode()


def test_a_change_whose_group_is_gone_cannot_be_undone(browse, sent, engineers):
    admin = browse("alice")
    there = confirmed(admin, sent(), {}).headers["Location"]
    engineers.delete()
    assert admin.get(there).status_code == 200


@pytest.mark.parametrize(
    "wrong",
    [
        {"compartment": "nowhere"},
        {"kind": "robot"},
        {"holder": "0"},
        {"holder": "x"},
        {"clearance": "secret"},
        {"was": ""},
    ],
)
def test_what_no_page_sends_changes_nothing(browse, sent, wrong):
    assert browse("alice").post(CHANGE, sent(**wrong)).status_code == 404
    assert not AuditEvent.objects.filter(action="grant.changed").exists()


def test_a_user_gets_a_grant_of_their_own(browse, world, sent, htmx):
    fields = sent(kind="user", holder=world.charlie.pk, compartment="finance", was="none", clearance="internal")
    confirmed(browse("alice"), fields, htmx)
    assert seen(world, "charlie") == ["ledger"]


def test_names_are_escaped(browse):
    Compartment.objects.create(slug="x", name="<b>Bold</b>")
    Group.objects.create(name="<i>group</i>")
    page = browse("alice").get(PAGE).content.decode()
    assert "<b>Bold" not in page
    assert "<i>group" not in page
