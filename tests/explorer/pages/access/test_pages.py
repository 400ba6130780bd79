"""Who may open the access pages, and what they cost."""

import uuid

import pytest
from django.contrib.auth.models import Group
from django.test import Client

from corecube.models import ApiKey, AuditEvent, Compartment, Grant, User

PAGES = [
    "/access/compartments/",
    "/access/compartments/new/",
    "/access/compartments/finance/",
    "/access/compartments/finance/delete/",
    "/access/clearances/",
    "/access/users/",
    "/access/users/new/",
    "/access/users/{user}/",
    "/access/groups/",
    "/access/groups/new/",
    "/access/groups/{group}/",
    "/access/groups/{group}/delete/",
    "/access/keys/",
    "/access/audit/",
    "/access/audit/export/",
]
DEEDS = [
    "/access/compartments/new/",
    "/access/compartments/finance/",
    "/access/compartments/finance/delete/",
    "/access/clearances/change/",
    "/access/users/new/",
    "/access/users/{user}/",
    "/access/users/{user}/groups/",
    "/access/users/{user}/active/",
    "/access/users/{user}/admin/",
    "/access/users/{user}/link/",
    "/access/groups/new/",
    "/access/groups/{group}/",
    "/access/groups/{group}/member/",
    "/access/groups/{group}/delete/",
]
OWN_PAGES = ["/keys/", "/keys/new/"]


@pytest.fixture
def world(governed):
    """Access needs no documents."""
    return governed


@pytest.fixture
def place(world):
    """Return an address with the ids of Bob and his group in it."""
    return lambda path: path.format(user=world.bob.pk, group=Group.objects.get(name="engineers").pk)


@pytest.fixture
def state():
    """Return everything that the pages could change."""
    models = (User, Group, Compartment, Grant, ApiKey, AuditEvent)
    return lambda: [list(model.objects.order_by("pk").values()) for model in models]


@pytest.mark.parametrize("path", [*PAGES, *OWN_PAGES])
def test_an_admin_sees_it(browse, place, path):
    assert browse("alice").get(place(path)).status_code == 200


@pytest.mark.parametrize("path", PAGES)
@pytest.mark.parametrize("name", ["bob", "charlie"])
def test_for_anyone_else_it_does_not_exist(browse, place, path, name):
    assert browse(name).get(place(path)).status_code == 404


@pytest.mark.parametrize("path", OWN_PAGES)
def test_everyone_has_a_page_of_their_own_keys(browse, path):
    assert browse("charlie").get(path).status_code == 200


@pytest.mark.parametrize("path", [*PAGES, *OWN_PAGES])
def test_a_stranger_is_asked_to_sign_in(world, place, path):
    assert Client().get(place(path)).headers["Location"].startswith("/login/")


@pytest.mark.parametrize("path", DEEDS)
@pytest.mark.parametrize("name", ["bob", "charlie", None])
def test_nobody_else_changes_anything(browse, place, state, path, name):
    sender = browse(name) if name else Client()
    before = state()
    sent = {"name": "x", "username": "x", "member": "yes", "admin": "yes", "active": "no"}
    assert sender.post(place(path), sent).status_code == (404 if name else 302)
    assert state() == before


@pytest.mark.parametrize(
    "path",
    [
        "/access/compartments/nowhere/",
        "/access/users/999999/",
        "/access/users/99999999999999999999999/",
        "/access/groups/999999/",
        f"/keys/{uuid.UUID(int=7)}/revoke/",
    ],
)
def test_what_there_is_not_is_not_found(browse, path):
    assert browse("alice").get(path).status_code == 404


@pytest.mark.parametrize("path", [*PAGES[:-1], *OWN_PAGES])
def test_a_page_costs_the_same_queries_whatever_there_is(browse, place, path, django_assert_max_num_queries):
    admin = browse("alice")
    group = Group.objects.get(name="engineers")
    for number in range(12):
        compartment = Compartment.objects.create(slug=f"c{number}", name=f"C {number}")
        user = User.objects.create_user(f"user{number}")
        user.groups.add(group)
        ApiKey.issue(user=user, name=f"key {number}")
        Grant.objects.create(user=user, compartment=compartment, clearance=number % 4)
        Grant.objects.create(group=Group.objects.create(name=f"g{number}"), compartment=compartment, clearance=1)
    with django_assert_max_num_queries(26):
        assert admin.get(place(path)).status_code == 200
