"""Groups and their members."""

import pytest
from django.contrib.auth.models import Group

from corecube.errors import InvalidRequestError
from corecube.models import AuditEvent, Grant
from corecube.people import create_group, delete_group, deletion_of, rename_group, set_membership


@pytest.fixture
def world(governed):
    """Access needs no documents."""
    return governed


@pytest.fixture
def engineers(world):
    return Group.objects.get(name="engineers")


def test_a_name_can_be_had_once(world):
    create_group(name="Sales", actor=world.alice)
    with pytest.raises(InvalidRequestError):
        create_group(name="sales", actor=world.alice)


def test_renaming_keeps_members_and_grants(world, engineers):
    rename_group(engineers, name="platform", actor=world.alice)
    assert world.bob.groups.get().name == "platform"
    with pytest.raises(InvalidRequestError):
        rename_group(create_group(name="Sales", actor=world.alice), name="Platform", actor=world.alice)


def test_membership_says_who_sees_more_or_less(world, engineers):
    assert set_membership(engineers, world.charlie, is_member=True, actor=world.alice).gained == {"charlie": 1}
    assert set_membership(engineers, world.charlie, is_member=True, actor=world.alice).gained == {}
    assert set_membership(engineers, world.charlie, is_member=False, actor=world.alice).lost == {"charlie": 1}
    logged = AuditEvent.objects.filter(subject="engineers").order_by("pk").values_list("action", flat=True)
    assert list(logged) == ["group.member_added", "group.member_removed"]


def test_what_deleting_does_is_told_without_doing_it(world, engineers):
    told = deletion_of(engineers)
    assert (told.members, told.grants, told.reach.lost) == (1, 1, {"bob": 1})
    assert Group.objects.filter(name="engineers").exists()
    assert Grant.objects.filter(group=engineers).exists()
    assert delete_group(engineers, actor=world.alice) == told
    assert not Group.objects.filter(name="engineers").exists()
    assert AuditEvent.objects.get(action="group.deleted").details == {"members": 1, "grants": 1}
