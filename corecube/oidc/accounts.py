"""The user of a person authenticated by the provider, and groups by the provider's groups claim."""

import hashlib
import re
from collections.abc import Collection, Iterator
from typing import Final

from django.conf import settings
from django.contrib.auth.models import Group
from django.db import IntegrityError, transaction
from django.utils import timezone

from corecube import audit
from corecube.errors import InvalidRequestError
from corecube.models import OidcGroup, OidcIdentity, OidcMembership, User
from corecube.oidc.claims import Person
from corecube.oidc.problems import InactiveAccountError, NoAccountError
from corecube.reach import ReachChange, reach_change, reach_of

_ATTEMPTS: Final = 3  #: Attempts to create a user, as concurrent requests may create the same user or name.
_MAX_USERNAME_LENGTH: Final = 150
_NOT_IN_USERNAMES: Final = re.compile(r"[^\w.@+-]+")


def user_of(person: Person) -> User:
    """Return the user of a person, with names, groups and admin rights updated from the provider.

    Raises NoAccountError if there is none and none may be created, and InactiveAccountError.
    """
    for attempt in range(_ATTEMPTS):
        try:
            return _signed_in(person)
        except IntegrityError:
            if attempt == _ATTEMPTS - 1:
                raise
    raise NoAccountError


@transaction.atomic
def _signed_in(person: Person) -> User:
    identity = OidcIdentity.objects.filter(issuer=person.issuer, subject=person.subject).first()
    if identity is None:
        identity = _new_identity(person)
    user = User.objects.select_for_update().get(pk=identity.user_id)
    if not user.is_active:
        raise InactiveAccountError
    names = (person.first_name or user.first_name, person.last_name or user.last_name)
    if names != (user.first_name, user.last_name):
        user.first_name, user.last_name = names
        user.save(update_fields=["first_name", "last_name"])
    update_groups(user, person.groups)
    _update_admin(user, identity, person)
    identity.last_used_at = timezone.now()
    identity.save(update_fields=["last_used_at", "gives_admin"])
    return user


def _new_identity(person: Person) -> OidcIdentity:
    """Link a person to the user with their verified email address, if allowed, or to a new user."""
    user = _user_by_mail(person)
    if user is not None:
        audit.record("user.linked", actor=None, subject=user.username, issuer=person.issuer)
    elif settings.CORECUBE_OIDC_CREATE_USERS:
        name = next(it for it in _usernames(person) if not User.objects.filter(username__iexact=it).exists())
        user = User.objects.create_user(name, email=person.mail or None, password=None)
        audit.record("user.created", actor=None, subject=user.username, has_password=False, via="sign-in")
    else:
        raise NoAccountError
    return OidcIdentity.objects.create(user=user, issuer=person.issuer, subject=person.subject)


def _user_by_mail(person: Person) -> User | None:
    """Return the only user with the verified email address, if not linked to this provider yet."""
    # The database may treat similar non-ASCII letters as equal (CVE-2019-19844).
    if not settings.CORECUBE_OIDC_LINK_BY_MAIL or not person.mail.isascii() or not person.mail:
        return None
    found = list(User.objects.filter(email__iexact=person.mail)[:2])
    if len(found) != 1 or found[0].oidc_identities.filter(issuer=person.issuer).exists():
        return None
    return found[0]


def _usernames(person: Person) -> Iterator[str]:
    wanted = _NOT_IN_USERNAMES.sub("-", person.username or person.mail)[:_MAX_USERNAME_LENGTH].strip("-")
    if not wanted:
        digest = hashlib.sha256(f"{person.issuer}\n{person.subject}".encode()).hexdigest()
        wanted = f"user-{digest[:12]}"
    yield wanted
    number = 2
    while True:
        yield f"{wanted[: _MAX_USERNAME_LENGTH - 10]}-{number}"
        number += 1


def _update_admin(user: User, identity: OidcIdentity, person: Person) -> None:
    """Give or remove admin rights by the claim; manually given ones are unchanged."""
    is_wanted = bool(settings.CORECUBE_OIDC_ADMIN_GROUP) and settings.CORECUBE_OIDC_ADMIN_GROUP in person.groups
    if is_wanted == user.is_staff or (not is_wanted and not identity.gives_admin):
        return
    user.is_staff = user.is_superuser = identity.gives_admin = is_wanted
    user.save(update_fields=["is_staff", "is_superuser"])
    action = "user.admin_given" if is_wanted else "user.admin_taken"
    audit.record(action, actor=None, subject=user.username, via="sign-in")


@transaction.atomic
def map_value(group: Group, value: str, *, actor: User) -> OidcGroup:
    """Map a value of the groups claim to a group, from the next sign-in; raise InvalidRequestError if it is mapped."""
    try:
        with transaction.atomic():
            made = OidcGroup.objects.create(value=value, group=group)
    except IntegrityError as error:
        raise InvalidRequestError("This value is already mapped to a group.") from error
    audit.record("group.claim_added", actor=actor, subject=group.name, value=value[:200])
    return made


@transaction.atomic
def unmap_value(mapping: OidcGroup, *, actor: User) -> ReachChange:
    """Remove the mapping of a value; return the change of access.

    Members by sign-in leave the group at once or, if other values are mapped to it, at their next sign-in.
    """
    group, value = mapping.group, mapping.value
    OidcGroup.objects.filter(pk=mapping.pk).delete()
    if group.oidc_values.exists():
        removed, change = 0, ReachChange()
    else:
        people = list(User.objects.filter(oidc_memberships__group=group).values_list("pk", flat=True))
        same = User.objects.filter(pk__in=people)
        seen = reach_of(same)
        group.user_set.remove(*people)
        removed, change = len(people), reach_change(seen, reach_of(same))
    audit.record("group.claim_removed", actor=actor, subject=group.name, value=value[:200], members=removed)
    return change


def update_groups(user: User, values: Collection[str]) -> None:
    """Update the groups of a locked user by the values of the claim. Manual memberships are unchanged."""
    mapped = set(OidcGroup.objects.filter(value__in=list(values)).values_list("group", flat=True))
    marked = set(user.oidc_memberships.values_list("group", flat=True))
    current = set(user.groups.values_list("pk", flat=True))
    added, removed = mapped - current, marked - mapped
    user.groups.add(*added)
    user.groups.remove(*removed)
    OidcMembership.objects.bulk_create(OidcMembership(user=user, group_id=pk) for pk in added)
    if added or removed:
        names = dict(Group.objects.filter(pk__in=added | removed).values_list("pk", "name"))
        audit.record(
            "user.groups_changed",
            actor=None,
            subject=user.username,
            via="sign-in",
            added=sorted(names[pk] for pk in added),
            removed=sorted(names[pk] for pk in removed),
        )
