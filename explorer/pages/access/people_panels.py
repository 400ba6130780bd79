"""Rows of users, and summaries of changes of access."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from corecube.models import User
from corecube.reach import Reach, ReachChange
from explorer import wording


@dataclass(frozen=True, slots=True)
class _UserRow:
    id: int
    username: str
    name: str
    is_admin: bool
    is_active: bool
    groups: tuple[str, ...]
    connections: int
    #: "3 days ago", or "never".
    signed_in: str


def user_row(user: User, reach: Reach, now: datetime) -> _UserRow:
    """Return a user's row; their groups must be prefetched."""
    return _UserRow(
        id=user.pk,
        username=user.username,
        name=user.get_full_name(),
        is_admin=user.is_staff,
        is_active=user.is_active,
        groups=tuple(sorted(group.name for group in user.groups.all())),
        connections=len(reach.get(user.username, ())),
        signed_in=wording.ago(user.last_login, now) if user.last_login else "never",
    )


def reach_summary(change: ReachChange) -> str:
    """Return who gains and who loses access to how many connections."""
    sentences = (_sentence(change.gained, "gain"), _sentence(change.lost, "lose"))
    return " ".join(filter(None, sentences)) or "Nobody's access changes."


def _sentence(counts: Mapping[str, int], verb: str) -> str:
    """Return "bob gains access to 2 connections." or "3 people lose access to up to 4 connections."."""
    if not counts:
        return ""
    limit = max(counts.values())
    if len(counts) == 1:
        return f"{next(iter(counts))} {verb}s access to {wording.counted(limit, 'connection')}."
    bound = "" if set(counts.values()) == {limit} else "up to "
    return f"{len(counts):,} people {verb} access to {bound}{wording.counted(limit, 'connection')}."
