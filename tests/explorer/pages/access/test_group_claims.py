"""Values of the sign-in provider's groups claim on a group's page."""

import pytest
from django.contrib.auth.models import Group

from corecube.models import AuditEvent, OidcGroup, OidcMembership


@pytest.fixture
def world(governed, settings):
    settings.CORECUBE_OIDC_ISSUER = "https://id.example.org"
    return governed


@pytest.fixture
def group(world):
    return Group.objects.get(name="engineers")


def path(group, more=""):
    return f"/access/groups/{group.pk}/{more}"


def test_a_value_is_added_and_removed(browse, group, world):
    alice = browse("alice")
    alice.post(path(group, "claims/"), {"value": "eng-eu"})
    assert "eng-eu" in alice.get(path(group)).content.decode()
    made = OidcGroup.objects.get()
    OidcMembership.objects.create(user=world.bob, group=group)
    assert "by sign-in" in alice.get(path(group)).content.decode()
    seen = alice.post(path(group, f"claims/{made.pk}/delete/")).context["effect"].token
    page = alice.post(path(group, f"claims/{made.pk}/delete/"), {"seen": seen}, follow=True).content.decode()
    assert "bob loses access to 1 connection." in page
    assert not group.user_set.exists()
    assert [it.action for it in AuditEvent.objects.filter(action__startswith="group.claim").order_by("pk")] == [
        "group.claim_added",
        "group.claim_removed",
    ]


def test_a_value_opens_one_group(browse, group):
    other = Group.objects.create(name="others")
    OidcGroup.objects.create(value="eng-eu", group=other)
    page = browse("alice").post(path(group, "claims/"), {"value": "eng-eu"}, follow=True).content.decode()
    assert "This value is already mapped to a group." in page
    assert OidcGroup.objects.get().group == other


@pytest.mark.parametrize("value", ["", " ", "x" * 501, "a\0b"])
def test_what_is_no_value_is_refused(browse, group, value):
    page = browse("alice").post(path(group, "claims/"), {"value": value}, follow=True).content.decode()
    assert "Enter a value of the groups claim" in page
    assert not OidcGroup.objects.exists()


def test_a_value_of_another_group_is_not_removed_here(browse, group):
    made = OidcGroup.objects.create(value="x", group=Group.objects.create(name="others"))
    assert browse("alice").post(path(group, f"claims/{made.pk}/delete/")).status_code == 404
    assert OidcGroup.objects.exists()


def test_without_a_provider_there_is_nothing_of_it(browse, group, settings):
    settings.CORECUBE_OIDC_ISSUER = ""
    assert "Groups claim" not in browse("alice").get(path(group)).content.decode()


def test_for_who_is_no_admin_there_is_no_page(browse, group):
    made = OidcGroup.objects.create(value="x", group=group)
    for more in ("claims/", f"claims/{made.pk}/delete/"):
        assert browse("bob").post(path(group, more), {"value": "y"}).status_code == 404
    assert [it.value for it in OidcGroup.objects.all()] == ["x"]
