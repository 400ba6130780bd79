"""Users and groups in the console."""

import re

import pytest
from django.contrib.auth.models import Group
from django.test import Client

from corecube.models import AuditEvent, User

USERS = "/access/users/"
GROUPS = "/access/groups/"
LONG = "correct horse battery"


@pytest.fixture
def world(governed):
    """Access needs no documents."""
    return governed


@pytest.fixture
def admin(browse):
    return browse("alice")


@pytest.fixture
def bob_page(world):
    return f"{USERS}{world.bob.pk}/"


def new_user(**changes):
    return {"username": "dora", "first_name": "Dora", "last_name": "", "password": LONG, **changes}


def test_the_list_can_be_searched_by_any_name(admin, world):
    User.objects.filter(pk=world.bob.pk).update(last_name="Okafor")
    for find, names in (("", ["alice", "bob", "charlie"]), ("okaf", ["bob"]), ("\0", ["alice", "bob", "charlie"])):
        assert [row.username for row, _ in admin.get(USERS, {"find": find}).context["rows"]] == names
    assert "No users found" in admin.get(USERS, {"find": "zz"}).content.decode()


@pytest.mark.parametrize("field", ["as", "user", "username"])
def test_active_users_are_suggested_for_a_field_of_any_name(admin, world, field):
    User.objects.filter(username="bob").update(is_active=False)
    found = admin.get("/access/users/names/", {field: "L"})
    assert re.findall('value="(.*?)"', found.content.decode()) == ["alice", "charlie"]


def test_a_user_is_added_with_a_password(admin):
    admin.post(f"{USERS}new/", new_user())
    assert Client().login(username="dora", password=LONG)
    assert LONG not in str(AuditEvent.objects.values())


def test_a_user_is_added_with_a_link_that_is_shown_once(admin, client):
    answer = admin.post(f"{USERS}new/", new_user(password=""))
    path = re.search(r"http://testserver(/password/set/[^\"]+)", answer.content.decode()).group(1)
    assert client.get(path, follow=True).status_code == 200
    made = User.objects.get(username="dora")
    assert not made.has_usable_password()
    assert "/password/set/" not in admin.get(f"{USERS}{made.pk}/").content.decode()
    assert path.rsplit("/", 2)[-2] not in str(AuditEvent.objects.values())


@pytest.mark.parametrize(
    "wrong",
    [
        {"username": "BOB"},
        {"username": "a b"},
        {"username": ""},
        {"password": "short"},
        {"password": "password"},
        {"username": "dorothea", "password": "dorothea1"},
    ],
)
def test_what_the_rules_refuse_is_not_added(admin, wrong):
    answer = admin.post(f"{USERS}new/", new_user(**wrong))
    assert answer.status_code == 422
    assert User.objects.count() == 3
    assert 'value="short"' not in answer.content.decode()


def test_the_page_shows_each_connection_with_its_rule(admin, bob_page):
    page = admin.get(bob_page).content.decode()
    assert "compartment Engineering through group engineers; sensitivity internal ≤ clearance internal" in page
    assert "sensitivity restricted &gt; clearance internal through group engineers" in page
    assert "no clearance on compartment Finance" in page


def test_looking_at_what_somebody_else_sees_is_audited(admin, world, bob_page):
    admin.get(bob_page)
    event = AuditEvent.objects.get(action="access.checked")
    assert (event.actor, event.subject) == (world.alice, "bob")
    admin.get(f"{USERS}{world.alice.pk}/")
    admin.post(bob_page, {"first_name": "Bob", "last_name": ""})
    assert AuditEvent.objects.filter(action="access.checked").count() == 1


def test_a_password_stands_in_no_report_of_an_error(admin, client):
    link = re.search(
        r"http://testserver(/password/set/[^\"]+)", admin.post(f"{USERS}new/", new_user(password="")).content.decode()
    )
    set_page = client.get(link.group(1)).headers["Location"]
    for browser, path in ((admin, f"{USERS}new/"), (admin, "/password/"), (client, set_page), (client, "/login/")):
        request = browser.post(path, {"password": "x"}).wsgi_request
        kept = request.sensitive_post_parameters
        assert kept == "__ALL__" or "password" in kept, path


def test_names_and_groups_change(admin, world, bob_page):
    sales = Group.objects.create(name="sales")
    admin.post(bob_page, {"first_name": "Bob", "last_name": "Okafor"})
    seen = admin.post(f"{bob_page}groups/", {"groups": [sales.pk]}).context["effect"].token
    page = admin.post(f"{bob_page}groups/", {"groups": [sales.pk], "seen": seen}, follow=True).content.decode()
    assert "bob loses access to 1 connection." in page
    assert world.bob.groups.get() == sales
    assert User.objects.get(username="bob").get_full_name() == "Bob Okafor"


def test_a_group_that_is_gone_changes_nothing(admin, world, bob_page):
    admin.post(f"{bob_page}groups/", {"groups": [999999]})
    assert world.bob.groups.get().name == "engineers"


def test_bob_is_shut_out_and_let_in(admin, bob_page):
    admin.post(f"{bob_page}active/", {"active": "no"})
    assert not User.objects.get(username="bob").is_active
    assert admin.get(bob_page).status_code == 200
    admin.post(f"{bob_page}active/", {"active": "yes"})
    assert User.objects.get(username="bob").is_active


def test_bob_becomes_an_admin_and_no_longer(admin, browse, bob_page):
    admin.post(f"{bob_page}admin/", {"admin": "yes"})
    assert browse("bob").get(USERS).status_code == 200
    admin.post(f"{bob_page}admin/", {"admin": "no"})
    assert browse("bob").get(USERS).status_code == 404


@pytest.mark.parametrize(("deed", "fields"), [("admin", {"admin": "no"}), ("active", {"active": "no"})])
def test_an_admin_cannot_do_it_to_themselves(admin, world, deed, fields):
    page = admin.post(f"{USERS}{world.alice.pk}/{deed}/", fields, follow=True).content.decode()
    assert "You cannot do this to yourself" in page
    assert User.objects.get(username="alice").is_admin


def test_a_link_for_someone_who_is_there(admin, world, bob_page):
    assert "/password/set/" in admin.post(f"{bob_page}link/").content.decode()
    User.objects.filter(pk=world.bob.pk).update(is_active=False)
    assert admin.post(f"{bob_page}link/").status_code == 302


def test_a_group_is_added_filled_renamed_and_deleted(admin, world):
    there = admin.post(f"{GROUPS}new/", {"name": "sales"}).headers["Location"]
    admin.post(f"{there}member/", {"member": "yes", "username": "charlie"})
    assert world.charlie.groups.get().name == "sales"
    admin.post(there, {"name": "Sales"})
    assert "There is already a group with this name." in admin.post(there, {"name": "Engineers"}).content.decode()
    admin.post(f"{there}member/", {"member": "no", "username": "charlie"})
    assert not world.charlie.groups.exists()
    admin.post(f"{there}delete/")
    assert not Group.objects.filter(name="sales").exists()


def test_a_member_who_does_not_exist_is_said(admin):
    group = Group.objects.get(name="engineers")
    page = admin.post(f"{GROUPS}{group.pk}/member/", {"member": "yes", "username": "nobody\0"}, follow=True)
    assert "No user with that name." in page.content.decode()


def test_deleting_a_group_says_who_loses_what(admin):
    group = Group.objects.get(name="engineers")
    page = admin.get(f"{GROUPS}{group.pk}/delete/").content.decode()
    assert "bob loses access to 1 connection." in page
    assert Group.objects.filter(pk=group.pk).exists()
