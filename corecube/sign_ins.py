"""Sign-ins with a password: limits, known browsers, events in the audit log, and pages to set a password."""

import logging
import secrets
from collections.abc import Mapping
from typing import Any, Final

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.forms import PasswordChangeForm
from django.contrib.auth.signals import user_logged_in, user_logged_out, user_login_failed
from django.contrib.auth.views import PasswordChangeView, PasswordResetConfirmView
from django.core import signing
from django.core.exceptions import ValidationError
from django.dispatch import receiver
from django.forms import BaseForm
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.urls import reverse_lazy

from corecube import audit, sign_in_limits
from corecube.http import Middleware
from corecube.models import User

logger = logging.getLogger(__name__)

PROVIDER_BACKEND: Final = "corecube.oidc.backend.ProviderBackend"
_MAX_ADDRESS_CHARACTERS: Final = 64


@receiver(user_logged_in)
def record_sign_in(request: HttpRequest | None, user: User, **_: object) -> None:
    """Record a sign-in, and remove the attempt from its limits."""
    attempt = _take_attempt(request)
    if request is not None and attempt:
        sign_in_limits.undo_attempt(attempt)
        request.signed_in_with_password = attempt.username  # type: ignore[attr-defined]  # for `SignInMiddleware`
    if address := address_of(request):
        through = {"via": "provider"} if getattr(user, "backend", "") == PROVIDER_BACKEND else {}
        audit.record("session.signed_in", actor=user, subject=user.username, address=address, **through)


@receiver(user_logged_out)
def record_sign_out(request: HttpRequest | None, user: User | None, **_: object) -> None:
    """Record a sign-out, unless the session had ended already."""
    if user is not None and (address := address_of(request)):
        audit.record("session.signed_out", actor=user, subject=user.username, address=address)


@receiver(user_login_failed)
def record_refusal(credentials: Mapping[str, Any], request: HttpRequest | None = None, **_: object) -> None:
    """Record a refused sign-in, without an unknown username, which may be a mistyped password."""
    _take_attempt(request)
    if address := address_of(request):
        _record("session.refused", str(credentials.get("username", "")), address=address)


def note_provider_refusal(request: HttpRequest, code: str) -> None:
    """Record a refused sign-in through the provider with its reason, at a limited rate."""
    if sign_in_limits.may_note_provider_refusal(address_of(request)):
        audit.record("session.refused", actor=None, address=address_of(request), via="provider", reason=code)


def address_of(request: HttpRequest | None) -> str:
    """Return the client address of a request, as reported by trusted proxies; empty without a request."""
    return str(request.META.get("REMOTE_ADDR", ""))[:_MAX_ADDRESS_CHARACTERS] if request is not None else ""


def _record(action: str, username: str, **details: object) -> None:
    name = username.replace("\0", "")
    known = User.objects.filter(username=name).exists()
    audit.record(action, actor=None, subject=name if known else "", known_user=known, **details)


def _take_attempt(request: HttpRequest | None) -> sign_in_limits.Attempt | None:
    attempt: sign_in_limits.Attempt | None = getattr(request, "sign_in_attempt", None)
    if request is not None and attempt is not None:
        del request.sign_in_attempt  # type: ignore[attr-defined]
    return attempt


#: The cookie that marks a browser in which a user has signed in; it gives no access.
KNOWN_BROWSER: Final = "known_browser"
_SALT: Final = "corecube.known_browser"
_KNOWN_SECONDS: Final = 180 * 24 * 3600
_MARK_BYTES: Final = 16


class SignInGuard:
    """The first authentication backend: counts attempts before the password is checked, and authenticates nobody."""

    def authenticate(
        self, request: HttpRequest | None, username: str | None = None, password: str | None = None, **_: object
    ) -> None:
        """Count the attempt; raise ValidationError, which the form shows, for too many."""
        if request is None or username is None or password is None:
            return
        _warn_of_proxy(request)
        attempt = sign_in_limits.Attempt.of(username, address_of(request), _mark(request, username))
        try:
            sign_in_limits.count(attempt)
        except sign_in_limits.SignInLimitError as error:
            request.sign_in_refusal = error  # type: ignore[attr-defined]  # Django's requests take attributes
            if sign_in_limits.begins_refusing(error.limit):
                label = error.limit.label
                _record("session.limited", username, address=address_of(request), limit=label)
                logger.warning("sign_in.limited by=%s address=%s", label.replace(" ", "_"), address_of(request))
            raise ValidationError(str(error), code=error.code) from error
        request.sign_in_attempt = attempt  # type: ignore[attr-defined]


class SignInMiddleware(Middleware):
    """Sets the status of a refused attempt, and marks the browser after a successful sign-in."""

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Answer the request."""
        response = self.get_response(request)
        error: sign_in_limits.SignInLimitError | None = getattr(request, "sign_in_refusal", None)
        if error is not None:
            response.status_code = error.status
            response.headers["Retry-After"] = str(error.retry_after_seconds)
        # A correct password without access: a user who is not an admin, at `/admin/`.
        if attempt := _take_attempt(request):
            _record("session.refused", attempt.username, address=address_of(request), reason="not_admin")
        if username := getattr(request, "signed_in_with_password", ""):
            mark = _mark(request, username) or secrets.token_urlsafe(_MARK_BYTES)
            response.set_cookie(
                KNOWN_BROWSER,
                signing.dumps((sign_in_limits.name_digest(username), mark), salt=_SALT),
                max_age=_KNOWN_SECONDS,
                secure=settings.SESSION_COOKIE_SECURE,
                httponly=True,
                samesite="Lax",
            )
        return response


def _mark(request: HttpRequest, username: str) -> str:
    """Return the mark of a browser in which this user has signed in before; empty otherwise."""
    try:
        name, mark = signing.loads(request.COOKIES.get(KNOWN_BROWSER, ""), salt=_SALT, max_age=_KNOWN_SECONDS)
    except (signing.BadSignature, ValueError, TypeError):
        return ""
    return str(mark) if name == sign_in_limits.name_digest(username) else ""


_warned: Final[set[str]] = set()


def _warn_of_proxy(request: HttpRequest) -> None:
    """Warn once about an untrusted proxy: all users behind it share one limit."""
    if "X-Forwarded-For" not in request.headers or settings.CORECUBE_TRUSTED_PROXIES or _warned:
        return
    _warned.add("proxy")
    logger.warning(
        "proxy.not_trusted address=%s: X-Forwarded-For is ignored; add the proxy to CORECUBE_TRUSTED_PROXIES",
        address_of(request),
    )


class SetPasswordView(PasswordResetConfirmView):
    """The page of a one-time link."""

    template_name = "registration/set_password.html"
    success_url = reverse_lazy("login")

    def form_valid(self, form: BaseForm) -> HttpResponse:
        """Store the password, reset the limits of failed sign-ins, and record the event."""
        response = super().form_valid(form)
        if isinstance(self.user, User):
            sign_in_limits.reset_limits(username=self.user.username)
            audit.record("user.password_set", actor=self.user, subject=self.user.username)
        return response


class ChangePasswordForm(PasswordChangeForm):
    """Limits attempts at the old password in a signed-in browser."""

    def clean_old_password(self) -> str:
        """Check the old password; reject it after too many failures."""
        attempt = sign_in_limits.Attempt.of(self.user.get_username(), "", browser="password change")
        try:
            sign_in_limits.count(attempt)
        except sign_in_limits.SignInLimitError as error:
            raise ValidationError(str(error), code=error.code) from error
        old: str = super().clean_old_password()
        sign_in_limits.undo_attempt(attempt)
        return old


class ChangePasswordView(PasswordChangeView):
    """The page to change the password."""

    form_class = ChangePasswordForm
    template_name = "registration/change_password.html"
    success_url = reverse_lazy("explorer:home")

    def form_valid(self, form: BaseForm) -> HttpResponse:
        """Store the password, end all other sessions, and record the event."""
        response = super().form_valid(form)
        if isinstance(self.request.user, User):
            audit.record("user.password_changed", actor=self.request.user, subject=self.request.user.username)
        messages.success(self.request, "Your password was changed. All other sessions were signed out.")
        return response
