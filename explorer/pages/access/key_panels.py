"""API keys in lists: what each may do, and whether it still may."""

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
class Known:
    """What the reader of a list of keys may know of by name: compartment and connection ids."""

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
    #: What narrows it; "all that its user sees" where nothing does.
    narrowing: str
    rate: str
    created: str
    used: str
    expires: str
    is_open: bool


def key_row(key: ApiKey, now: datetime, known: Known | None) -> KeyRow:
    """Return a key's row; its user, compartments and connections must be read already.

    What is not `known` to its reader is not named; None knows everything.
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
        narrowing=_sees(key, known),
        rate=f"{key.requests_per_minute:,} a minute" if key.requests_per_minute else "any",
        created=wording.ago(key.created_at, now),
        used=wording.ago(key.last_used_at, now) if key.last_used_at else "never",
        expires=f"{key.expires_at:%Y-%m-%d}" if key.expires_at else "never",
        is_open=state in {KeyState.ACTIVE, KeyState.OWNER_INACTIVE},
    )


def _sees(key: ApiKey, known: Known | None) -> str:
    sees = "; ".join(_narrowing(key, known)) or "all that its user sees"
    return f"{sees}; acts for users of a front end" if key.may_forward_users else sees


def _narrowing(key: ApiKey, known: Known | None) -> Iterator[str]:
    compartments = [(it.pk, it.name) for it in key.compartments.all()]
    if compartments:
        yield "only " + _names(compartments, known.compartments if known else None, "other compartments")
    if key.max_sensitivity is not None:
        yield f"up to {level_of(key.max_sensitivity)}"
    if key.presets:
        yield "presets " + ", ".join(map(str, key.presets))
    pushes = [(it.pk, it.name) for it in key.push_connections.all()]
    if pushes:
        yield "pushes to " + _names(pushes, known.connections if known else None, "other connections")


def _names(found: Iterable[tuple[int, str]], known: Collection[int] | None, others: str) -> str:
    """Return the names that are known, and one word for all that are not, whatever their number."""
    items = list(found)
    names = [name for pk, name in items if known is None or pk in known]
    return ", ".join(names if len(names) == len(items) else [*names, others])
