"""Letting a key act for users, in the console."""

import re
import uuid

import pytest
from django.utils import timezone

from corecube.keys import UserTokenError, forwarded_user
from corecube.models import ApiKey
from tests.corecube.test_forwarding import token


@pytest.fixture
def world(governed):
    return governed


@pytest.fixture
def key(world):
    return ApiKey.issue(user=world.alice, name="front end")[0]


def path(key):
    return f"/access/keys/{key.pk}/forwarding/"


def secret_in(answer):
    return re.search(r'id="forwarding-secret" value="([\w-]{43})"', answer.content.decode()).group(1)


def test_the_secret_is_shown_once(browse, key, world):
    alice = browse("alice")
    answer = alice.post(path(key), {"do": "allow"})
    secret = secret_in(answer)
    key.refresh_from_db()
    assert "no-store" in answer.headers["Cache-Control"]
    assert forwarded_user(key, token(secret)) == world.bob
    for page in (path(key), "/access/keys/"):
        assert secret not in alice.get(page).content.decode()
    assert "user forwarding" in alice.get("/access/keys/").content.decode()


def test_a_new_one_ends_the_old_one(browse, key):
    alice = browse("alice")
    old = secret_in(alice.post(path(key), {"do": "allow"}))
    assert secret_in(alice.post(path(key), {"do": "allow"})) != old
    key.refresh_from_db()
    with pytest.raises(UserTokenError):
        forwarded_user(key, token(old))


def test_it_can_be_stopped(browse, key):
    alice = browse("alice")
    alice.post(path(key), {"do": "allow"})
    page = alice.post(path(key), {"do": "stop"}, follow=True).content.decode()
    assert "now acts only for its own user" in page
    assert not ApiKey.objects.get().may_forward_users


def test_a_new_key_can_have_it_from_the_start(browse, world):
    fields = {"name": "front end", "lifetime": "30", "user": "bob", "may_forward_users": "on"}
    answer = browse("alice").post("/keys/new/", fields)
    key = ApiKey.objects.get()
    assert forwarded_user(key, token(secret_in(answer))) == world.bob


def test_who_is_no_admin_cannot_give_it(browse, world):
    bob = browse("bob")
    assert "may_forward_users" not in bob.get("/keys/new/").content.decode()
    bob.post("/keys/new/", {"name": "sly", "lifetime": "30", "may_forward_users": "on"})
    key = ApiKey.objects.get()
    assert not key.may_forward_users
    assert bob.get(path(key)).status_code == bob.post(path(key), {"do": "allow"}).status_code == 404
    assert path(key) not in bob.get("/keys/").content.decode()


def test_a_key_that_is_over_is_none(browse, key):
    ApiKey.objects.update(revoked_at=timezone.now())
    assert browse("alice").post(path(key), {"do": "allow"}).status_code == 404
    assert browse("alice").get(f"/access/keys/{uuid.uuid4()}/forwarding/").status_code == 404
