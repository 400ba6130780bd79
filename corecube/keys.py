"""Issue and revoke API keys, and let front ends with one act for their signed-in users: `X-CoreCube-User: <JWT>`.

The token is signed (HS256) with a second secret of the key, so that the key alone cannot act for other users, and
unsigned headers that a front end passes on have no effect.
"""

import hashlib
import logging
import secrets
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any, ClassVar, Final

import jwt
from django.db import transaction
from django.utils import timezone

from corecube import audit
from corecube.access import Principal, scope_for
from corecube.database import atomic_change
from corecube.errors import ConfigError, NotAuthenticatedError, NotPermittedError
from corecube.models import ApiKey, Compartment, Connection, ForwardedToken, User
from corecube.sanitise import storable
from corecube.secrets import Purpose, seal, unseal

logger = logging.getLogger(__name__)

USER_HEADER: Final = "X-CoreCube-User"
AUDIENCE: Final = "corecube"
MAX_SECONDS: Final = 300  #: Maximum lifetime of a token in seconds.
_LEEWAY: Final = 30  #: Tolerated clock difference in seconds.
_SECRET_BYTES: Final = 32
_MAX_TOKEN_LENGTH: Final = 4096
_MAX_NAME_LENGTH: Final = 150
_NAME: Final = "forwarding"


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
    max_sensitivity: int | None = None  #: The maximum sensitivity; None for that of its user.
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
        if user != actor:
            raise NotPermittedError("Only an admin may issue a key for someone else.")
        if terms.push_connections:
            raise NotPermittedError("Only an admin may let a key push documents.")
        if not {it.pk for it in terms.compartments} <= {it.pk for it in visible_compartments(actor)}:
            raise NotPermittedError("A key can only be limited to compartments that its user can see.")
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


@atomic_change()
def revoke_key(key: ApiKey, *, actor: User) -> None:
    """Revoke a key permanently. Raises NotPermittedError for the key of another user, unless the actor is an admin."""
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


class UserTokenError(NotAuthenticatedError, code="invalid_user_token"):
    """The X-CoreCube-User token is not valid for this API key."""

    param: ClassVar[str] = USER_HEADER


class ForwardingNotAllowedError(NotPermittedError):
    """This API key may not act for other users."""

    param: ClassVar[str] = USER_HEADER


@transaction.atomic
def allow_forwarding(key: ApiKey, *, actor: User) -> str:
    """Let a key act for other users, and return the new secret, which is shown only once and replaces any other.

    Raises NotPermittedError for anyone but an admin.
    """
    _require_admin(actor)
    secret = secrets.token_urlsafe(_SECRET_BYTES)
    _set(key, sealed=seal({_NAME: secret}, Purpose.FORWARDING))
    audit.record("key.forwarding_allowed", actor=actor, subject=str(key), user=key.user.username)
    return secret


@transaction.atomic
def stop_forwarding(key: ApiKey, *, actor: User) -> None:
    """Stop user forwarding; raise NotPermittedError for anyone but an admin."""
    _require_admin(actor)
    if not key.may_forward_users:
        return
    _set(key, sealed="")
    audit.record("key.forwarding_stopped", actor=actor, subject=str(key), user=key.user.username)


def forwarded_user(key: ApiKey, token: str) -> User:
    """Return the active user in the token of a key.

    Raises ForwardingNotAllowedError for a key without user forwarding, and UserTokenError, always with the same
    message, for an invalid, expired or reused token, for a lifetime that is too long, and for an unknown user.
    """
    if not key.may_forward_users:
        raise ForwardingNotAllowedError
    claims = _claims(key, token)
    name = claims["sub"]
    if not 0 < len(name) <= _MAX_NAME_LENGTH or name != storable(name):
        raise UserTokenError
    _require_unused(key, claims)
    user = User.objects.filter(username=name, is_active=True).first()
    if user is None:
        raise UserTokenError
    return user


def _claims(key: ApiKey, token: str) -> dict[str, Any]:
    try:
        secret = unseal(key.sealed_forwarding_secret, Purpose.FORWARDING)[_NAME]
        claims: dict[str, Any] = jwt.decode(
            token[: _MAX_TOKEN_LENGTH + 1],
            secret,
            algorithms=["HS256"],
            audience=AUDIENCE,
            leeway=_LEEWAY,
            options={"require": ["sub", "aud", "iat", "exp"], "strict_aud": True},
        )
        lifetime = int(claims["exp"]) - int(claims["iat"])
    except (ConfigError, KeyError) as error:
        logger.error("forwarding.secret_lost key=%s", key.prefix)  # noqa: TRY400 -- the traceback would name the secret's token
        raise UserTokenError from error
    except (jwt.PyJWTError, ValueError, TypeError, OverflowError) as error:
        raise UserTokenError from error
    if not 0 < lifetime <= MAX_SECONDS:
        raise UserTokenError
    return claims


def _require_unused(key: ApiKey, claims: dict[str, Any]) -> None:
    """Record the id of a token, if any, until it expires; raise UserTokenError for a reused one."""
    if "jti" not in claims:
        return
    digest = hashlib.sha256(str(claims["jti"]).encode("utf-8", "surrogatepass")).hexdigest()
    ends = datetime.fromtimestamp(int(claims["exp"]), UTC) + timedelta(seconds=_LEEWAY)
    key.forwarded_tokens.filter(expires_at__lt=timezone.now()).delete()
    _, is_new = ForwardedToken.objects.get_or_create(key=key, digest=digest, defaults={"expires_at": ends})
    if not is_new:
        raise UserTokenError


def _set(key: ApiKey, *, sealed: str) -> None:
    key.may_forward_users, key.sealed_forwarding_secret = bool(sealed), sealed
    key.save(update_fields=["may_forward_users", "sealed_forwarding_secret"])


def _require_admin(actor: User) -> None:
    if not actor.is_admin:
        raise NotPermittedError("Only an admin may change user forwarding of a key.")
