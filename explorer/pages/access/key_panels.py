"""Rows of API keys with their limits and state."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from corecube.keys import KeyState, key_state
from corecube.models import ApiKey
from explorer import wording
from explorer.pages.access.clearance_panels import level_of

_TONES: Final[Mapping[KeyState, str]] = {
    KeyState.ACTIVE: "good",
    KeyState.OWNER_INACTIVE: "warn",
    KeyState.EXPIRED: "",
    KeyState.REVOKED: "",
}


@dataclass(frozen=True, slots=True)
class Visible:
    """Ids of the compartments and connections whose names the viewer may see."""

    compartments: Collection[int]
    connections: Collection[int]


@dataclass(frozen=True, slots=True)
class KeyRow:
    """A key in a list."""

    id: UUID
    name: str
    prefix: str
    owner: str
    owner_id: int
    state: str
    tone: str
    #: The limits of its access; "everything its user can see" without any.
    limits: str
    rate: str
    created: str
    used: str
    expires: str
    is_open: bool


def key_row(key: ApiKey, now: datetime, visible: Visible | None) -> KeyRow:
    """Return a key's row; its user, compartments and connections must be read already.

    What is not `visible` to the viewer is not named; None names everything.
    """
    state = key_state(key, now)
    return KeyRow(
        id=key.pk,
        name=key.name,
        prefix=key.prefix,
        owner=key.user.username,
        owner_id=key.user_id,
        state=state.value,
        tone=_TONES[state],
        limits=_access(key, visible),
        rate=f"{key.requests_per_minute:,} per minute" if key.requests_per_minute else "unlimited",
        created=wording.ago(key.created_at, now),
        used=wording.ago(key.last_used_at, now) if key.last_used_at else "never",
        expires=f"{key.expires_at:%Y-%m-%d}" if key.expires_at else "never",
        is_open=state in {KeyState.ACTIVE, KeyState.OWNER_INACTIVE},
    )


def _access(key: ApiKey, visible: Visible | None) -> str:
    access = "; ".join(_limits(key, visible)) or "everything its user can see"
    return f"{access}; user forwarding" if key.may_forward_users else access


def _limits(key: ApiKey, visible: Visible | None) -> Iterator[str]:
    compartments = [(it.pk, it.name) for it in key.compartments.all()]
    if compartments:
        yield "only " + _names(compartments, visible.compartments if visible else None, "other compartments")
    if key.max_sensitivity is not None:
        yield f"up to {level_of(key.max_sensitivity)}"
    if key.presets:
        yield "presets " + ", ".join(map(str, key.presets))
    pushes = [(it.pk, it.name) for it in key.push_connections.all()]
    if pushes:
        yield "can push to " + _names(pushes, visible.connections if visible else None, "other connections")


def _names(found: Iterable[tuple[int, str]], visible: Collection[int] | None, others: str) -> str:
    """Return the visible names, and one term for all others."""
    items = list(found)
    names = [name for pk, name in items if visible is None or pk in visible]
    return ", ".join(names if len(names) == len(items) else [*names, others])
