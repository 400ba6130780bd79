"""The first person who can sign in."""

import secrets
from dataclasses import dataclass
from typing import Final

from django.contrib.auth.models import Group
from django.db import transaction

from corecube import audit
from corecube.models import User

#: The group of those who look after the installation; what it may see is granted like any other group's.
ADMINISTRATORS: Final = "Administrators"
_USERNAME: Final = "admin"


@dataclass(frozen=True, slots=True)
class NewAccount:
    """A user who was just made, with the password that is kept nowhere else."""

    username: str
    password: str

    def line(self) -> str:
        """Return both in columns."""
        return f"  {self.username:<12} {self.password}"


def draw_password() -> str:
    """Return a random password of 72 bits."""
    return secrets.token_urlsafe(9)


@transaction.atomic
def ensure_first_admin() -> NewAccount | None:
    """Make the first admin, and return the account; None when there is an admin, or a user of that name."""
    if User.objects.filter(is_superuser=True).exists() or User.objects.filter(username=_USERNAME).exists():
        return None
    password = draw_password()
    user = User.objects.create_superuser(_USERNAME, password=password)
    user.groups.add(Group.objects.get_or_create(name=ADMINISTRATORS)[0])
    audit.record("user.first_admin", actor=None, subject=_USERNAME)
    return NewAccount(_USERNAME, password)
