"""Sign-ins with a password, at the console and at `/admin/`, held to the limits of `corecube.sign_in_limits`."""

import logging
import secrets
from typing import Final

from django.conf import settings
from django.core import signing
from django.core.exceptions import ValidationError
from django.http import HttpRequest
from django.http.response import HttpResponseBase

from corecube import sign_ins
from corecube.http import GetResponse
from corecube.sign_in_limits import Attempt, SignInLimitError, count, name_digest

logger = logging.getLogger(__name__)

#: The cookie that marks a browser in which a user has signed in; it opens nothing by itself.
KNOWN_BROWSER: Final = "known_browser"
_SALT: Final = "corecube.known_browser"
_KNOWN_SECONDS: Final = 180 * 24 * 3600
_MARK_BYTES: Final = 16


class SignInGuard:
    """The first authentication backend: it counts an attempt before its password is checked, and signs nobody in."""

    def authenticate(
        self, request: HttpRequest | None, username: str | None = None, password: str | None = None, **_: object
    ) -> None:
        """Count the attempt; raise ValidationError, which the form shows, when there were too many."""
        if request is None or username is None or password is None:
            return
        _warn_of_proxy(request)
        attempt = Attempt.of(username, sign_ins.address_of(request), _mark(request, username))
        try:
            count(attempt)
        except SignInLimitError as error:
            request.sign_in_refusal = error  # type: ignore[attr-defined]  # Django's requests take attributes
            sign_ins.note_limit(request, username, error)
            raise ValidationError(str(error), code=error.code) from error
        request.sign_in_attempt = attempt  # type: ignore[attr-defined]


class SignInMiddleware:
    """Gives a refused attempt its status, and marks the browser of one that was right."""

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Answer the request."""
        response = self.get_response(request)
        error: SignInLimitError | None = getattr(request, "sign_in_refusal", None)
        if error is not None:
            response.status_code = error.status
            response.headers["Retry-After"] = str(error.retry_after_seconds)
        sign_ins.settle(request)
        if username := getattr(request, "signed_in_with_password", ""):
            _remember_browser(request, response, username)
        return response


def _mark(request: HttpRequest, username: str) -> str:
    """Return the mark of a browser in which this user has signed in before; empty for any other."""
    try:
        name, mark = signing.loads(request.COOKIES.get(KNOWN_BROWSER, ""), salt=_SALT, max_age=_KNOWN_SECONDS)
    except (signing.BadSignature, ValueError, TypeError):
        return ""
    return str(mark) if name == name_digest(username) else ""


def _remember_browser(request: HttpRequest, response: HttpResponseBase, username: str) -> None:
    mark = _mark(request, username) or secrets.token_urlsafe(_MARK_BYTES)
    response.set_cookie(
        KNOWN_BROWSER,
        signing.dumps((name_digest(username), mark), salt=_SALT),
        max_age=_KNOWN_SECONDS,
        secure=settings.SESSION_COOKIE_SECURE,
        httponly=True,
        samesite="Lax",
    )


_warned: Final[set[str]] = set()


def _warn_of_proxy(request: HttpRequest) -> None:
    """Say once that a proxy's addresses are not read, since everybody behind it would share one limit."""
    if "X-Forwarded-For" not in request.headers or settings.CORECUBE_TRUSTED_PROXIES or _warned:
        return
    _warned.add("proxy")
    logger.warning(
        "proxy.not_trusted address=%s: X-Forwarded-For is ignored; name your proxy in CORECUBE_TRUSTED_PROXIES",
        sign_ins.address_of(request),
    )
