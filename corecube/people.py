"""Users and groups: create, change and delete them, admin rights, memberships, and the first admin."""

import secrets
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from django.contrib.auth.models import Group
from django.contrib.auth.tokens import default_token_generator
from django.contrib.sessions.models import Session
from django.db import transaction
from django.urls import reverse
from django.utils import timezone
from django.utils.encoding import force_bytes
from django.utils.http import urlsafe_base64_encode

from corecube import audit
from corecube.database import atomic_change
from corecube.errors import InvalidRequestError, NotPermittedError
from corecube.models import User
from corecube.reach import ReachChange, reach_change, reach_of

#: The group of the first admin; its access comes from grants, as for any other group.
ADMINISTRATORS: Final = "Administrators"
_USERNAME: Final = "admin"
_GROUP_TAKEN: Final = "There is already a group with this name."


@atomic_change("This username is already taken.")
def create_user(
    *, username: str, first_name: str = "", last_name: str = "", password: str | None = None, actor: User
) -> User:
    """Add a user without access, who cannot sign in without a password; raise ConflictError for a taken username."""
    user = User.objects.create_user(username, password=password, first_name=first_name, last_name=last_name)
    audit.record("user.created", actor=actor, subject=username, has_password=password is not None)
    return user


@atomic_change()
def rename_user(user: User, *, first_name: str, last_name: str, actor: User) -> None:
    """Change the first and last name of a user."""
    if (user.first_name, user.last_name) == (first_name, last_name):
        return
    User.objects.select_for_update().get(pk=user.pk)
    user.first_name, user.last_name = first_name, last_name
    user.save(update_fields=["first_name", "last_name"])
    audit.record("user.renamed", actor=actor, subject=user.username)


@atomic_change()
def set_active(user: User, *, is_active: bool, actor: User) -> None:
    """Activate or deactivate a user; deactivation ends their sessions and disables their API keys.

    Raises NotPermittedError for oneself, and for the last admin.
    """
    found = _changeable(user, actor, ends_admin=not is_active)
    if found.is_active == is_active:
        return
    found.is_active = is_active
    found.save(update_fields=["is_active"])
    if not is_active:
        # Otherwise one could continue after a new activation.
        sessions = Session.objects.filter(expire_date__gt=timezone.now())
        ended = [it.pk for it in sessions.iterator() if it.get_decoded().get("_auth_user_id") == str(found.pk)]
        Session.objects.filter(pk__in=ended).delete()
    audit.record("user.activated" if is_active else "user.deactivated", actor=actor, subject=found.username)


@atomic_change()
def set_admin(user: User, *, is_admin: bool, actor: User) -> None:
    """Give or remove admin rights. Raises NotPermittedError for oneself, and for the last admin."""
    found = _changeable(user, actor, ends_admin=not is_admin)
    if found.is_staff == is_admin:
        return
    found.is_staff = found.is_superuser = is_admin
    found.save(update_fields=["is_staff", "is_superuser"])
    # A manual decision takes precedence over the sign-in provider.
    found.oidc_identities.update(gives_admin=False)
    audit.record("user.admin_given" if is_admin else "user.admin_taken", actor=actor, subject=found.username)


@atomic_change()
def set_groups(user: User, *, groups: Collection[Group], actor: User) -> ReachChange:
    """Set the groups of a user; return the change of access."""
    same = User.objects.filter(pk=user.pk)
    User.objects.select_for_update().get(pk=user.pk)
    before, seen = set(user.groups.all()), reach_of(same)
    user.groups.set(groups)
    added, removed = set(groups) - before, before - set(groups)
    if not added and not removed:
        return ReachChange()
    audit.record(
        "user.groups_changed",
        actor=actor,
        subject=user.username,
        added=sorted(group.name for group in added),
        removed=sorted(group.name for group in removed),
    )
    return reach_change(seen, reach_of(same))


@atomic_change()
def password_link(user: User, *, actor: User) -> str:
    """Return the path of a one-time link to set a password, valid for PASSWORD_RESET_TIMEOUT.

    A change of the password or a sign-in invalidates it. Raises InvalidRequestError for an inactive user.
    """
    if not user.is_active:
        raise InvalidRequestError("Inactive users cannot sign in.")
    audit.record("user.password_link", actor=actor, subject=user.username)
    uid = urlsafe_base64_encode(force_bytes(user.pk))
    return reverse("set_password", args=[uid, default_token_generator.make_token(user)])


def _changeable(user: User, actor: User, *, ends_admin: bool) -> User:
    """Return the locked user, with all admins locked, so that two admins cannot remove each other."""
    if user.pk == actor.pk:
        raise NotPermittedError("You cannot do this to yourself. Another admin can.")
    admins = User.objects.select_for_update().filter(is_active=True, is_staff=True).order_by("pk")
    ids = {admin.pk for admin in admins}
    if actor.pk not in ids:
        raise NotPermittedError("Only an admin may do this.")
    if ends_admin and ids == {user.pk}:
        raise NotPermittedError("This is the last admin.")
    return User.objects.select_for_update().get(pk=user.pk)


@dataclass(frozen=True, slots=True)
class NewAccount:
    """A new user with the password, which is not stored."""

    username: str
    password: str

    def line(self) -> str:
        """Return both as a line of output."""
        return f"  {self.username:<12} {self.password}"


def draw_password() -> str:
    """Return a random password of 72 bits."""
    return secrets.token_urlsafe(9)


@transaction.atomic
def ensure_first_admin() -> NewAccount | None:
    """Create the first admin and return the account; None if there is an admin, or a user of that name."""
    if User.objects.filter(is_superuser=True).exists() or User.objects.filter(username=_USERNAME).exists():
        return None
    password = draw_password()
    user = User.objects.create_superuser(_USERNAME, password=password)
    user.groups.add(Group.objects.get_or_create(name=ADMINISTRATORS)[0])
    audit.record("user.first_admin", actor=None, subject=_USERNAME)
    return NewAccount(_USERNAME, password)


@dataclass(frozen=True, slots=True)
class GroupConsequences:
    """The consequences of deleting a group."""

    members: int
    grants: int
    reach: ReachChange


@atomic_change(_GROUP_TAKEN)
def create_group(*, name: str, actor: User) -> Group:
    """Add an empty group without grants; raise InvalidRequestError for an existing name."""
    _require_new_group(name)
    group = Group.objects.create(name=name)
    audit.record("group.created", actor=actor, subject=name)
    return group


@atomic_change(_GROUP_TAKEN)
def rename_group(group: Group, *, name: str, actor: User) -> None:
    """Rename a group; raise InvalidRequestError for an existing name."""
    if group.name == name:
        return
    Group.objects.select_for_update().get(pk=group.pk)
    _require_new_group(name)
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
        found = _delete_group(group)
        transaction.set_rollback(True)
    return found


@atomic_change()
def delete_group(group: Group, *, actor: User) -> GroupConsequences:
    """Delete a group with its grants; return the consequences."""
    found = _delete_group(group)
    audit.record("group.deleted", actor=actor, subject=group.name, members=found.members, grants=found.grants)
    return found


def _delete_group(group: Group) -> GroupConsequences:
    people = User.objects.filter(pk__in=list(User.objects.filter(groups=group).values_list("pk", flat=True)))
    seen, members, grants = reach_of(people), people.count(), group.grants.count()
    Group.objects.filter(pk=group.pk).delete()
    return GroupConsequences(members, grants, reach_change(seen, reach_of(people)))


def _require_new_group(name: str) -> None:
    if Group.objects.filter(name__iexact=name).exists():
        raise InvalidRequestError(_GROUP_TAKEN)
