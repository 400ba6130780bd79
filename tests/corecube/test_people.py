"""Users: letting them in and shutting them out."""

import pytest
from django.contrib.auth.models import Group
from django.test import Client

from corecube import people as services
from corecube.errors import InvalidRequestError, NotPermittedError
from corecube.models import ApiKey, AuditEvent, User


@pytest.fixture
def world(governed):
    """Access needs no documents."""
    return governed


@pytest.fixture
def alice(people):
    return people["alice"]


@pytest.fixture
def bob(people):
    return people["bob"]


def actions():
    return list(AuditEvent.objects.order_by("pk").values_list("action", "subject"))


def test_a_user_without_a_password_cannot_sign_in(alice):
    made = services.create_user(username="dora", actor=alice)
    assert not made.has_usable_password()
    assert not made.is_staff
    assert not Client().login(username="dora", password="")
    assert actions() == [("user.created", "dora")]


def test_the_link_sets_a_password_once(alice, client):
    services.create_user(username="dora", actor=alice)
    path = services.password_link(User.objects.get(username="dora"), actor=alice)
    form = client.get(path, follow=True)
    fields = {"new_password1": "correct horse battery", "new_password2": "correct horse battery"}
    assert client.post(form.redirect_chain[-1][0], fields).headers["Location"] == "/login/"
    assert Client().login(username="dora", password="correct horse battery")
    assert "This link has expired" in Client().get(path, follow=True).content.decode()
    assert ("user.password_set", "dora") in actions()


def test_the_link_takes_no_weak_password(alice, client):
    services.create_user(username="dora", actor=alice)
    path = services.password_link(User.objects.get(username="dora"), actor=alice)
    form = client.get(path, follow=True)
    weak = {"new_password1": "dora", "new_password2": "dora"}
    assert "too short" in client.post(form.redirect_chain[-1][0], weak).content.decode()
    assert not User.objects.get(username="dora").has_usable_password()


def test_who_is_not_active_gets_no_link(alice, bob):
    services.set_active(bob, is_active=False, actor=alice)
    bob.refresh_from_db()
    with pytest.raises(InvalidRequestError):
        services.password_link(bob, actor=alice)


def test_deactivating_signs_out_and_stops_keys_and_activating_signs_nobody_in(alice, bob):
    browser = Client()
    browser.force_login(bob)
    _, secret = ApiKey.issue(user=bob, name="robot")
    assert browser.get("/explorer/").status_code == 200
    services.set_active(bob, is_active=False, actor=alice)
    assert browser.get("/explorer/").status_code == 302
    assert ApiKey.objects.for_secret(secret) is None
    services.set_active(bob, is_active=True, actor=alice)
    assert browser.get("/explorer/").status_code == 302
    assert ApiKey.objects.for_secret(secret) is not None
    assert actions() == [("user.deactivated", "bob"), ("user.activated", "bob")]


def test_others_stay_signed_in(alice, bob, people):
    browser = Client()
    browser.force_login(people["charlie"])
    services.set_active(bob, is_active=False, actor=alice)
    assert browser.get("/explorer/").status_code == 200


def test_an_admin_is_made_and_unmade(alice, bob):
    services.set_admin(bob, is_admin=True, actor=alice)
    bob.refresh_from_db()
    assert bob.is_admin
    services.set_admin(alice, is_admin=False, actor=bob)
    alice.refresh_from_db()
    assert not alice.is_admin
    assert not alice.is_superuser
    assert actions() == [("user.admin_given", "bob"), ("user.admin_taken", "alice")]


@pytest.mark.parametrize("deed", ["admin", "active"])
def test_nobody_does_it_to_themselves(alice, deed):
    with pytest.raises(NotPermittedError):
        _take(deed, alice, alice)
    assert User.objects.get(username="alice").is_admin


@pytest.mark.parametrize("deed", ["admin", "active"])
def test_the_last_admin_stays(alice, bob, deed):
    # Bob was an admin when his request began, and is none by now.
    bob.is_staff = True
    with pytest.raises(NotPermittedError):
        _take(deed, alice, bob)
    assert User.objects.get(username="alice").is_admin


def _take(deed, user, actor):
    if deed == "admin":
        services.set_admin(user, is_admin=False, actor=actor)
    else:
        services.set_active(user, is_active=False, actor=actor)


def test_groups_change_what_is_seen(world):
    engineers = Group.objects.get(name="engineers")
    change = services.set_groups(world.charlie, groups=[engineers], actor=world.alice)
    assert change.gained == {"charlie": 1}
    change = services.set_groups(world.charlie, groups=[], actor=world.alice)
    assert change.lost == {"charlie": 1}
    logged = AuditEvent.objects.filter(action="user.groups_changed").order_by("pk")
    assert [it.details for it in logged] == [
        {"added": ["engineers"], "removed": []},
        {"added": [], "removed": ["engineers"]},
    ]
