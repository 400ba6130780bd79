"""Sign-ins, refused ones and sign-outs in the audit log.

Only what came over HTTP: a program that signs a user in by itself has no address.
"""

from collections.abc import Mapping
from typing import Any, Final

from django.contrib.auth.signals import user_logged_in, user_logged_out, user_login_failed
from django.dispatch import receiver
from django.http import HttpRequest

from corecube import audit
from corecube.models import User

#: The backend of those who come through the sign-in provider.
PROVIDER_BACKEND: Final = "corecube.oidc.backend.ProviderBackend"


@receiver(user_logged_in)
def record_sign_in(request: HttpRequest | None, user: User, **_: object) -> None:
    """Record that somebody signed in."""
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
    address = _address(request)
    if not address:
        return
    name = str(credentials.get("username", "")).replace("\0", "")
    known = User.objects.filter(username=name).exists()
    audit.record("session.refused", actor=None, subject=name if known else "", address=address, known_user=known)


def note_provider_refusal(request: HttpRequest, code: str) -> None:
    """Record that somebody who came through the sign-in provider was refused, and why."""
    audit.record("session.refused", actor=None, address=_address(request), via="provider", reason=code)


def _address(request: HttpRequest | None) -> str:
    return str(request.META.get("REMOTE_ADDR", "")) if request is not None else ""
