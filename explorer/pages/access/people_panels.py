"""Users and groups in lists."""

from dataclasses import dataclass
from datetime import datetime

from corecube.models import User
from corecube.reach import Reach
from explorer import wording


@dataclass(frozen=True, slots=True)
class UserRow:
    """A user in the list."""

    id: int
    username: str
    name: str
    is_admin: bool
    is_active: bool
    groups: tuple[str, ...]
    #: Connections that they see.
    connections: int
    #: "3 days ago", or "never".
    signed_in: str


def user_row(user: User, reach: Reach, now: datetime) -> UserRow:
    """Return a user's row; their groups must be prefetched."""
    return UserRow(
        id=user.pk,
        username=user.username,
        name=user.get_full_name(),
        is_admin=user.is_staff,
        is_active=user.is_active,
        groups=tuple(sorted(group.name for group in user.groups.all())),
        connections=len(reach.get(user.username, ())),
        signed_in=wording.ago(user.last_login, now) if user.last_login else "never",
    )
