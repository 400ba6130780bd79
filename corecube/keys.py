"""Issue and revoke API keys."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from django.utils import timezone

from corecube import audit
from corecube.access import Principal, scope_for
from corecube.database import atomic_change
from corecube.errors import NotPermittedError
from corecube.models import ApiKey, Compartment, Connection, User


class KeyState(StrEnum):
    """The state of a key."""

    ACTIVE = "active"
    OWNER_INACTIVE = "owner inactive"
    EXPIRED = "expired"
    REVOKED = "revoked"


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyTerms:
    """The settings of a key. All but push access only limit the access of its user."""

    name: str
    expires_at: datetime | None = None
    #: The maximum sensitivity; None for that of its user.
    max_sensitivity: int | None = None
    compartments: tuple[Compartment, ...] = ()
    presets: tuple[str, ...] = ()
    push_connections: tuple[Connection, ...] = ()
    requests_per_minute: int | None = None


@atomic_change()
def issue_key(*, user: User, terms: KeyTerms, actor: User) -> tuple[ApiKey, str]:
    """Save a new key and return it with its secret, which is not stored.

    Admins issue keys for any user; others only for themselves, within their access and without push access. Raises
    NotPermittedError.
    """
    if not actor.is_admin:
        _require_own(user, terms, actor)
    key = ApiKey(
        user=user,
        name=terms.name,
        expires_at=terms.expires_at,
        max_sensitivity=terms.max_sensitivity,
        presets=list(terms.presets),
        requests_per_minute=terms.requests_per_minute,
    )
    secret = key.draw_secret()
    key.save()
    key.compartments.set(terms.compartments)
    key.push_connections.set(terms.push_connections)
    audit.record("key.issued", actor=actor, subject=str(key), user=user.username)
    return key, secret


def _require_own(user: User, terms: KeyTerms, actor: User) -> None:
    if user != actor:
        raise NotPermittedError("Only an admin may issue a key for someone else.")
    if terms.push_connections:
        raise NotPermittedError("Only an admin may let a key push documents.")
    if not {it.pk for it in terms.compartments} <= {it.pk for it in visible_compartments(actor)}:
        raise NotPermittedError("A key can only be limited to compartments that its user can see.")


@atomic_change()
def revoke_key(key: ApiKey, *, actor: User) -> None:
    """Revoke a key permanently.

    Raises NotPermittedError for the key of another user, unless the actor is an admin.
    """
    if key.user != actor and not actor.is_admin:
        raise NotPermittedError("Only an admin may revoke someone else's key.")
    revoked = ApiKey.objects.filter(pk=key.pk, revoked_at__isnull=True).update(revoked_at=timezone.now())
    if revoked:
        audit.record("key.revoked", actor=actor, subject=str(key), user=key.user.username)


def key_state(key: ApiKey, now: datetime) -> KeyState:
    """Return the state of a key; revoked takes precedence over expired."""
    if key.revoked_at is not None:
        return KeyState.REVOKED
    if key.expires_at is not None and key.expires_at <= now:
        return KeyState.EXPIRED
    return KeyState.ACTIVE if key.user.is_active else KeyState.OWNER_INACTIVE


def visible_compartments(user: User) -> list[Compartment]:
    """Return the compartments with connections that a user can see, by name."""
    ids = [inclusion.connection.id for inclusion in scope_for(Principal(user)).included]
    return list(Compartment.objects.filter(connections__in=ids).distinct())
