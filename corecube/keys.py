"""Issuing and revoking API keys."""

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
    """Whether a key opens anything, and what keeps it from it."""

    ACTIVE = "active"
    OWNER_INACTIVE = "owner inactive"
    EXPIRED = "expired"
    REVOKED = "revoked"


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyTerms:
    """What a key may do. Everything in here only takes from what its user may do, but pushing."""

    name: str
    expires_at: datetime | None = None
    #: Sensitivity that it goes up to; None leaves its user's clearances.
    max_sensitivity: int | None = None
    compartments: tuple[Compartment, ...] = ()
    presets: tuple[str, ...] = ()
    push_connections: tuple[Connection, ...] = ()
    requests_per_minute: int | None = None


@atomic_change()
def issue_key(*, user: User, terms: KeyTerms, actor: User) -> tuple[ApiKey, str]:
    """Save a new key and return it with its secret, which is stored nowhere and can be shown only now.

    An admin issues keys for anyone; others for themselves, within what they see and without pushing. Raises
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
    if not {it.pk for it in terms.compartments} <= {it.pk for it in seen_compartments(actor)}:
        raise NotPermittedError("A key can only be narrowed to what its user may see.")


@atomic_change()
def revoke_key(key: ApiKey, *, actor: User) -> None:
    """Stop a key for good. One that is revoked already stays as it is.

    Raises NotPermittedError for someone else's key, unless the actor is an admin.
    """
    if key.user != actor and not actor.is_admin:
        raise NotPermittedError("Only an admin may revoke someone else's key.")
    revoked = ApiKey.objects.filter(pk=key.pk, revoked_at__isnull=True).update(revoked_at=timezone.now())
    if revoked:
        audit.record("key.revoked", actor=actor, subject=str(key), user=key.user.username)


def key_state(key: ApiKey, now: datetime) -> KeyState:
    """Return a key's state; what cannot be undone comes first."""
    if key.revoked_at is not None:
        return KeyState.REVOKED
    if key.expires_at is not None and key.expires_at <= now:
        return KeyState.EXPIRED
    return KeyState.ACTIVE if key.user.is_active else KeyState.OWNER_INACTIVE


def seen_compartments(user: User) -> list[Compartment]:
    """Return the compartments of which a user sees a connection, by name: those that they may know of."""
    ids = [inclusion.connection.id for inclusion in scope_for(Principal(user)).included]
    return list(Compartment.objects.filter(connections__in=ids).distinct())
