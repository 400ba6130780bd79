"""The users that an admin chooses from: all of them, or in large installations those found by name."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from django.db.models import Q, QuerySet

from corecube.models import User

MAX_LISTED: Final = 100  #: With more users than this, a menu becomes a text field with suggestions.
MAX_SUGGESTED: Final = 20


def users_named(text: str) -> QuerySet[User]:
    """Return the users whose names or email address contain each word of a text, in the order of their usernames."""
    found = User.objects.order_by("username")
    # PostgreSQL does not accept NUL, and no name contains it.
    for word in text.replace("\0", " ").split():
        name = Q(first_name__icontains=word) | Q(last_name__icontains=word)
        found = found.filter(Q(username__icontains=word) | Q(email__icontains=word) | name)
    return found


@dataclass(frozen=True)
class UserMenu:
    """Usernames in order; not all of them if there are more than 100."""

    names: tuple[str, ...]
    is_whole: bool


def user_menu(viewer: User, chosen: str = "", *, with_inactive: bool = False) -> UserMenu | None:
    """Return the users that an admin can choose, and the chosen name even if nobody has it; None for anyone else."""
    if not viewer.is_admin:
        return None
    found = users_named("") if with_inactive else users_named("").filter(is_active=True)
    names = tuple(found.values_list("username", flat=True)[: MAX_LISTED + 1])
    if len(names) > MAX_LISTED:
        return UserMenu(names[:MAX_LISTED], is_whole=False)
    return UserMenu(names if not chosen or chosen in names else (*names, chosen), is_whole=True)


@dataclass(frozen=True)
class UserBoxes:
    """Active users to check: those that are checked, the first others that were found, and how many more were found."""

    checked: tuple[User, ...]
    others: tuple[User, ...]
    unlisted: int


def user_boxes(checked: Collection[int], text: str = "") -> UserBoxes:
    """Return the active users with these ids, and up to 100 others whose name contains the text."""
    active = users_named(text).filter(is_active=True).exclude(pk__in=checked)
    others = tuple(active[:MAX_LISTED])
    # Count only if the list is full.
    unlisted = active.count() - MAX_LISTED if len(others) == MAX_LISTED else 0
    return UserBoxes(tuple(users_named("").filter(is_active=True, pk__in=checked)), others, unlisted)
