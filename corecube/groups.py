"""Create, rename and delete groups, and change their members."""

from dataclasses import dataclass
from typing import Final

from django.contrib.auth.models import Group
from django.db import transaction

from corecube import audit
from corecube.database import atomic_change
from corecube.errors import InvalidRequestError
from corecube.models import User
from corecube.reach import ReachChange, reach_change, reach_of

_TAKEN: Final = "There is already a group with this name."


@dataclass(frozen=True, slots=True)
class GroupConsequences:
    """The consequences of deleting a group."""

    members: int
    grants: int
    reach: ReachChange


@atomic_change(_TAKEN)
def create_group(*, name: str, actor: User) -> Group:
    """Add an empty group without grants; raise InvalidRequestError for an existing name."""
    _require_new(name)
    group = Group.objects.create(name=name)
    audit.record("group.created", actor=actor, subject=name)
    return group


@atomic_change(_TAKEN)
def rename_group(group: Group, *, name: str, actor: User) -> None:
    """Rename a group; raise InvalidRequestError for an existing name."""
    if group.name == name:
        return
    Group.objects.select_for_update().get(pk=group.pk)
    _require_new(name)
    before, group.name = group.name, name
    group.save(update_fields=["name"])
    audit.record("group.renamed", actor=actor, subject=name, before=before)


@atomic_change()
def set_membership(group: Group, user: User, *, is_member: bool, actor: User) -> ReachChange:
    """Add a user to a group or remove them; return the change of access."""
    same = User.objects.filter(pk=user.pk)
    User.objects.select_for_update().get(pk=user.pk)
    if user.groups.filter(pk=group.pk).exists() == is_member:
        return ReachChange()
    seen = reach_of(same)
    if is_member:
        user.groups.add(group)
    else:
        user.groups.remove(group)
    action = "group.member_added" if is_member else "group.member_removed"
    audit.record(action, actor=actor, subject=group.name, user=user.username)
    return reach_change(seen, reach_of(same))


def deletion_of(group: Group) -> GroupConsequences:
    """Return the consequences of deleting a group, by a deletion that is rolled back."""
    with transaction.atomic():
        found = _delete(group)
        transaction.set_rollback(True)
    return found


@atomic_change()
def delete_group(group: Group, *, actor: User) -> GroupConsequences:
    """Delete a group with its grants; return the consequences."""
    found = _delete(group)
    audit.record("group.deleted", actor=actor, subject=group.name, members=found.members, grants=found.grants)
    return found


def _delete(group: Group) -> GroupConsequences:
    people = User.objects.filter(pk__in=list(User.objects.filter(groups=group).values_list("pk", flat=True)))
    seen, members, grants = reach_of(people), people.count(), group.grants.count()
    Group.objects.filter(pk=group.pk).delete()
    return GroupConsequences(members, grants, reach_change(seen, reach_of(people)))


def _require_new(name: str) -> None:
    if Group.objects.filter(name__iexact=name).exists():
        raise InvalidRequestError(_TAKEN)
