"""API keys of front ends that act for their signed-in users: `X-CoreCube-User: <JWT>`.

The token is signed (HS256) with a second secret of the key, so that the key alone cannot act for other users, and
unsigned headers that a front end passes on have no effect.
"""

import hashlib
import logging
import secrets
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar, Final

import jwt
from django.db import transaction
from django.utils import timezone

from corecube import audit
from corecube.errors import ConfigError, NotAuthenticatedError, NotPermittedError
from corecube.models import ApiKey, ForwardedToken, User
from corecube.sanitise import storable
from corecube.secrets import Purpose, seal, unseal

logger = logging.getLogger(__name__)

USER_HEADER: Final = "X-CoreCube-User"
AUDIENCE: Final = "corecube"
#: Maximum lifetime of a token in seconds.
MAX_SECONDS: Final = 300
#: Tolerated clock difference in seconds.
_LEEWAY: Final = 30
_SECRET_BYTES: Final = 32
_MAX_TOKEN_LENGTH: Final = 4096
_MAX_NAME_LENGTH: Final = 150
_NAME: Final = "forwarding"


class UserTokenError(NotAuthenticatedError):
    """The X-CoreCube-User token is not valid for this API key."""

    code: ClassVar[str] = "invalid_user_token"
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
