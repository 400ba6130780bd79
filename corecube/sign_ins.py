"""Sign-ins, refused ones and sign-outs in the audit log.

Only what came over HTTP: a program that signs a user in by itself has no address.
"""

import logging
from collections.abc import Mapping
from typing import Any, Final

from django.contrib.auth.signals import user_logged_in, user_logged_out, user_login_failed
from django.dispatch import receiver
from django.http import HttpRequest

from corecube import audit
from corecube.models import User
from corecube.sign_in_limits import (
    Attempt,
    SignInLimitError,
    begins_refusing,
    give_back,
    may_note_provider_refusal,
)

logger = logging.getLogger(__name__)

#: The backend of those who come through the sign-in provider.
PROVIDER_BACKEND: Final = "corecube.oidc.backend.ProviderBackend"
_MAX_ADDRESS_CHARACTERS: Final = 64


@receiver(user_logged_in)
def record_sign_in(request: HttpRequest | None, user: User, **_: object) -> None:
    """Record that somebody signed in, and give the attempt back to its limits."""
    attempt = _taken(request)
    if request is not None and attempt:
        give_back(attempt)
        request.signed_in_with_password = attempt.username  # type: ignore[attr-defined]  # for `SignInMiddleware`
    if address := _address(request):
        through = {"via": "provider"} if getattr(user, "backend", "") == PROVIDER_BACKEND else {}
        audit.record("session.signed_in", actor=user, subject=user.username, address=address, **through)


@receiver(user_logged_out)
def record_sign_out(request: HttpRequest | None, user: User | None, **_: object) -> None:
    """Record that somebody signed out; nobody did where the session was over already."""
    if user is not None and (address := _address(request)):
        audit.record("session.signed_out", actor=user, subject=user.username, address=address)


@receiver(user_login_failed)
def record_refusal(credentials: Mapping[str, Any], request: HttpRequest | None = None, **_: object) -> None:
    """Record that a sign-in was refused. A name that nobody has is left out: people type passwords there."""
    _taken(request)
    if address := _address(request):
        _record("session.refused", str(credentials.get("username", "")), address=address)


def settle(request: HttpRequest) -> None:
    """Record the refusal of an attempt whose password was right and that opened nothing: no admin, at `/admin/`."""
    if attempt := _taken(request):
        _record("session.refused", attempt.username, address=_address(request), reason="not_admin")


def note_limit(request: HttpRequest, username: str, error: SignInLimitError) -> None:
    """Record that attempts are refused unread, once for each limit in 15 minutes: a flood adds no more than that."""
    if not begins_refusing(error.limit):
        return
    _record("session.limited", username, address=_address(request), limit=error.limit.label)
    logger.warning("sign_in.limited by=%s address=%s", error.limit.label.replace(" ", "_"), _address(request))


def note_provider_refusal(request: HttpRequest, code: str) -> None:
    """Record that somebody who came through the sign-in provider was refused, and why; a flood is left out."""
    if may_note_provider_refusal(_address(request)):
        audit.record("session.refused", actor=None, address=_address(request), via="provider", reason=code)


def address_of(request: HttpRequest) -> str:
    """Return the address that a request came from, as far as the proxies on its way are trusted."""
    return str(request.META.get("REMOTE_ADDR", ""))[:_MAX_ADDRESS_CHARACTERS]


def _record(action: str, username: str, **details: object) -> None:
    name = username.replace("\0", "")
    known = User.objects.filter(username=name).exists()
    audit.record(action, actor=None, subject=name if known else "", known_user=known, **details)


def _taken(request: HttpRequest | None) -> Attempt | None:
    """Return the attempt of a request that nobody has settled yet, and settle it."""
    attempt: Attempt | None = getattr(request, "sign_in_attempt", None)
    if request is not None and attempt is not None:
        del request.sign_in_attempt  # type: ignore[attr-defined]
    return attempt


def _address(request: HttpRequest | None) -> str:
    return address_of(request) if request is not None else ""
