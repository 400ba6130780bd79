"""The pages of sign-in and sign-out, with and without the provider."""

import logging
import time
from collections.abc import Callable, Mapping
from datetime import timedelta
from functools import wraps
from typing import Any, Final
from urllib.parse import urlencode

from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY
from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.views import LoginView, LogoutView
from django.core.exceptions import SuspiciousOperation
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET
from mozilla_django_oidc.views import OIDCAuthenticationCallbackView, OIDCAuthenticationRequestView

from corecube.oidc.backend import LibrarySettings
from corecube.oidc.problems import DeclinedSignInError, LostSignInError, NoAccountError, SignInError
from corecube.oidc.provider import is_configured, provider
from corecube.sign_ins import PROVIDER_BACKEND, note_provider_refusal

logger = logging.getLogger(__name__)

_View = Callable[[HttpRequest], HttpResponse]
_MAX_SIGN_IN_SECONDS: Final = 900
_PENDING: Final = "oidc_states"  #: The session key of the library for pending sign-ins by state.


def _page(view: _View) -> _View:
    """Make a page for GET that is never cached, with an error page for a failed sign-in; Http404 without a provider."""

    @require_GET
    @never_cache
    @wraps(view)
    def guarded(request: HttpRequest) -> HttpResponse:
        if not is_configured():
            raise Http404
        try:
            return view(request)
        except SignInError as error:
            problem = error
        except SuspiciousOperation as error:
            problem = LostSignInError()
            problem.__cause__ = error
        logger.warning("oidc.refused code=%s cause=%s", problem.code, type(problem.__cause__).__name__)
        note_provider_refusal(request, problem.code)
        context = {"message": str(problem), "label": settings.CORECUBE_OIDC_LABEL}
        return render(request, "registration/oidc_problem.html", context, status=problem.status)

    return guarded


@_page
def sign_out_there(request: HttpRequest) -> HttpResponse:
    """Redirect the browser to the sign-out page of the provider."""
    address = provider().sign_out_url
    if not address:
        raise Http404
    back = {
        "client_id": settings.CORECUBE_OIDC_CLIENT_ID,
        "post_logout_redirect_uri": request.build_absolute_uri(reverse("login")),
    }
    return HttpResponseRedirect(_with_query(address, urlencode(back)))


@_page
def signed_out(request: HttpRequest) -> HttpResponse:
    """Confirm the sign-out, and offer that of the provider."""
    try:
        ends_there = bool(provider().sign_out_url)
    except SignInError:
        ends_there = False
    context = {"label": settings.CORECUBE_OIDC_LABEL, "ends_there": ends_there}
    return render(request, "registration/signed_out.html", context)


class SignInForm(AuthenticationForm):
    """A username and a password; the error does not say which of them is wrong."""

    error_messages = {  # noqa: RUF012 -- Django's
        **AuthenticationForm.error_messages,
        "invalid_login": "Wrong username or password.",
    }


class SignInView(LoginView):
    """The sign-in page: a password, the provider, or both."""

    form_class = SignInForm
    redirect_authenticated_user = True

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:  # noqa: ANN401 -- Django's signature
        """Add the offered ways to sign in."""
        offers = {
            "offers_provider": is_configured(),
            "offers_password": not settings.CORECUBE_OIDC_ONLY,
            "label": settings.CORECUBE_OIDC_LABEL,
        }
        return super().get_context_data(**kwargs) | offers


class SignOutView(LogoutView):
    """Ends the session; users of the provider are informed that they are still signed in there."""

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:  # noqa: ANN401 -- Django's signature
        """End the session."""
        came_through_provider = is_configured() and request.session.get(BACKEND_SESSION_KEY) == PROVIDER_BACKEND
        response: HttpResponse = super().post(request, *args, **kwargs)
        return HttpResponseRedirect(reverse("signed_out")) if came_through_provider else response


class _Start(LibrarySettings, OIDCAuthenticationRequestView):  # type: ignore[misc]  # the library has no types
    """The library's start view, with state, nonce and PKCE; `next` is limited to this server."""

    def get_extra_params(self, request: HttpRequest) -> Mapping[str, str]:  # noqa: ARG002 -- the library's signature
        """Return the configured callback URL, if any."""
        address = settings.CORECUBE_OIDC_CALLBACK_URL
        return {"redirect_uri": address} if address else {}

    def get(self, request: HttpRequest) -> HttpResponse:
        """Redirect the browser; the URL of the provider may already have a query."""
        url: str = super().get(request).url
        address = provider().authorization_url
        return HttpResponseRedirect(_with_query(address, url.removeprefix(f"{address}?")))


class _Callback(LibrarySettings, OIDCAuthenticationCallbackView):  # type: ignore[misc]  # the library has no types
    """The library's callback view, which accepts each state only once."""

    def get(self, request: HttpRequest) -> HttpResponse:
        """Sign in, or raise SignInError."""
        pending = request.session.get(_PENDING, {})
        attempt = pending.get(request.GET.get("state", ""))
        if attempt is None or not 0 <= time.time() - attempt["added_on"] <= _MAX_SIGN_IN_SECONDS:
            raise LostSignInError
        if request.GET.get("iss", settings.CORECUBE_OIDC_ISSUER) != settings.CORECUBE_OIDC_ISSUER:
            raise LostSignInError
        if "error" in request.GET or "code" not in request.GET:
            del pending[request.GET["state"]]
            request.session.modified = True
            raise DeclinedSignInError
        response: HttpResponse = super().get(request)
        return response

    def login_success(self) -> HttpResponse:
        """Sign in with a limited session."""
        response: HttpResponse = super().login_success()
        ends = timezone.now() + timedelta(hours=settings.CORECUBE_OIDC_SESSION_HOURS)
        self.request.session.set_expiry(ends)
        return response

    def login_failure(self) -> HttpResponse:
        """Raise NoAccountError; the library gives no reason."""
        raise NoAccountError


start = _page(_Start.as_view())  #: Redirects the browser to the provider.
callback = _page(_Callback.as_view())  #: Completes the sign-in after the provider, and redirects to the requested page.


def _with_query(address: str, query: str) -> str:
    return f"{address}{'&' if '?' in address else '?'}{query}"
