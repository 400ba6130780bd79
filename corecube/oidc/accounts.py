"""Finding or making the user of a person whom the provider vouches for."""

import hashlib
import re
from collections.abc import Iterator
from typing import Final

from django.conf import settings
from django.db import IntegrityError, transaction
from django.utils import timezone

from corecube import audit
from corecube.models import OidcIdentity, User
from corecube.oidc.claims import Person
from corecube.oidc.groups import follow_claims
from corecube.oidc.problems import InactiveAccountError, NoAccountError

#: Tries to keep a new person, of whom another request may be making the same or their name be taken meanwhile.
_ATTEMPTS: Final = 3
_MAX_USERNAME_LENGTH: Final = 150
_NOT_IN_USERNAMES: Final = re.compile(r"[^\w.@+-]+")


def user_of(person: Person) -> User:
    """Return the user whom a person signs in as, with names, groups and admin right as the provider has them.

    Raises NoAccountError where there is none and none may be made, and InactiveAccountError.
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
    _follow_names(user, person)
    follow_claims(user, person.groups)
    _follow_admin(user, identity, person)
    identity.last_used_at = timezone.now()
    identity.save(update_fields=["last_used_at", "gives_admin"])
    return user


def _new_identity(person: Person) -> OidcIdentity:
    """Tie a person to the user with their verified mail address, where that is allowed, or to a new user."""
    user = _user_by_mail(person)
    if user is not None:
        audit.record("user.linked", actor=None, subject=user.username, issuer=person.issuer)
    elif settings.CORECUBE_OIDC_CREATE_USERS:
        user = User.objects.create_user(_free_username(person), email=person.mail or None, password=None)
        audit.record("user.created", actor=None, subject=user.username, has_password=False, via="sign-in")
    else:
        raise NoAccountError
    return OidcIdentity.objects.create(user=user, issuer=person.issuer, subject=person.subject)


def _user_by_mail(person: Person) -> User | None:
    """Return the one user with a person's verified address, who has not signed in through this provider before."""
    # Letters that only look alike are the same to the database in some cases (CVE-2019-19844).
    if not settings.CORECUBE_OIDC_LINK_BY_MAIL or not person.mail.isascii() or not person.mail:
        return None
    found = list(User.objects.filter(email__iexact=person.mail)[:2])
    if len(found) != 1 or found[0].oidc_identities.filter(issuer=person.issuer).exists():
        return None
    return found[0]


def _free_username(person: Person) -> str:
    """Return the wanted name or, where somebody has it, the same with a number."""
    return next(name for name in _usernames(person) if not User.objects.filter(username__iexact=name).exists())


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


def _follow_names(user: User, person: Person) -> None:
    names = (person.first_name or user.first_name, person.last_name or user.last_name)
    if names != (user.first_name, user.last_name):
        user.first_name, user.last_name = names
        user.save(update_fields=["first_name", "last_name"])


def _follow_admin(user: User, identity: OidcIdentity, person: Person) -> None:
    """Give or take the admin right by the claim; one that somebody gave by hand stays."""
    is_wanted = bool(settings.CORECUBE_OIDC_ADMIN_GROUP) and settings.CORECUBE_OIDC_ADMIN_GROUP in person.groups
    if is_wanted == user.is_staff or (not is_wanted and not identity.gives_admin):
        return
    user.is_staff = user.is_superuser = identity.gives_admin = is_wanted
    user.save(update_fields=["is_staff", "is_superuser"])
    action = "user.admin_given" if is_wanted else "user.admin_taken"
    audit.record(action, actor=None, subject=user.username, via="sign-in")
