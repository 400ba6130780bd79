"""The consent page, the token endpoint, and the metadata of the server and its resource."""

import re
from typing import Any, Final
from urllib.parse import urlsplit

from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.decorators import method_decorator
from django.views.decorators.cache import never_cache
from oauth2_provider import views as toolkit
from oauth2_provider.exceptions import FatalClientError, OAuthToolkitError
from oauth2_provider.models import Application
from oauth2_provider.scopes import get_scopes_backend
from oauth2_provider.views.base import BaseAuthorizationView
from oauthlib.oauth2.rfc6749.errors import CustomOAuth2Error, InvalidRedirectURIError, InvalidRequestError

from corecube import audit
from corecube.models import User
from corecube.oauth.registration import is_loopback, may_redirect_to
from corecube.oauth.resource import resource_of

_S256: Final = re.compile(r"[A-Za-z0-9_-]{43}")


@method_decorator(never_cache, name="dispatch")
class AuthorizeView(BaseAuthorizationView):  # type: ignore[misc]  # the library has no types
    """Asks the signed-in user, each time, whether a client may act as them.

    The form is sent to the address of the page, so that all parameters are checked again.
    """

    http_method_names: Final = ("get", "post")

    def get(self, request: HttpRequest) -> HttpResponse:
        """Show who asks for what, and where the answer goes."""
        try:
            scopes, asked = self._asked(request)
        except OAuthToolkitError as error:
            return self._failed(error)
        descriptions = get_scopes_backend().get_all_scopes()
        context = {
            "client": _client(asked),
            "host": urlsplit(asked["redirect_uri"]).netloc,
            "is_loopback": is_loopback(asked["redirect_uri"]),
            "scopes": [descriptions[scope] for scope in scopes],
        }
        return render(request, "registration/authorize.html", context)

    def post(self, request: HttpRequest) -> HttpResponse:
        """Send the client a code, or that the user refused."""
        is_allowed = request.POST.get("answer") == "allow"
        try:
            scopes, asked = self._asked(request)
            address, *_ = self.create_authorization_response(request, " ".join(scopes), asked, is_allowed)
        except OAuthToolkitError as error:
            return self._failed(error)
        host = urlsplit(asked["redirect_uri"]).netloc
        if isinstance(request.user, User):
            audit.record("client.connected", actor=request.user, subject=str(_client(asked)), host=host)
        return self.redirect(address, _client(asked))

    def redirect(self, redirect_to: str, application: Application | None) -> HttpResponse:
        """Return a page that leaves for the client: the content security policy forbids that to an answered form."""
        context = {"address": redirect_to, "client": application}
        return render(self.request, "registration/authorized.html", context)

    def render_to_response(self, context: dict[str, Any], status: int) -> HttpResponse:
        """Return a page for a request with an unknown client or redirect, to which nothing may be sent."""
        message = context["error"].description or "The client that sent you here made an invalid request."
        return render(self.request, "error.html", {"title": "Not connected", "message": message}, status=status)

    def _failed(self, error: OAuthToolkitError) -> HttpResponse:
        return self.error_response(error, None)  # type: ignore[no-any-return]

    def _asked(self, request: HttpRequest) -> tuple[list[str], dict[str, Any]]:
        """Return the scopes and the valid parameters of a request; raise OAuthToolkitError."""
        scopes, asked = self.validate_authorization_request(request)
        own, client = resource_of(request), _client(asked)
        if client.registration_source == client.RegistrationSource.DCR and not may_redirect_to(asked["redirect_uri"]):
            message = "This server no longer permits the host of the application that sent you here."
            raise FatalClientError(error=InvalidRedirectURIError(message))
        problem = None
        if asked.get("code_challenge_method") != "S256" or not _S256.fullmatch(asked["code_challenge"]):
            problem = InvalidRequestError("A code_challenge with the method S256 is required.")
        elif set(request.GET.getlist("resource")) - {own}:
            problem = CustomOAuth2Error("invalid_target", f"The only resource here is {own}.")
        if problem is not None:
            problem.state = asked["state"]
            raise OAuthToolkitError(error=problem, redirect_uri=asked["redirect_uri"])
        return scopes, {**asked, "resource": [own]}


def _client(asked: dict[str, Any]) -> Application:
    return asked["request"].client


class TokenView(toolkit.TokenView):  # type: ignore[misc]  # the library has no types
    """Exchanges codes and refresh tokens."""

    http_method_names: Final = ("post",)

    @transaction.atomic
    def post(self, request: HttpRequest) -> HttpResponse:
        """Return tokens or an error, and in both cases store what it changed."""
        response: HttpResponse = self.authorization_flow_token_response(request)
        # The library leaves it out of some errors.
        response.headers["Content-Type"] = "application/json"
        return response


class RevokeView(toolkit.RevokeTokenView):  # type: ignore[misc]  # the library has no types
    """Revokes a client's own tokens (RFC 7009)."""

    http_method_names: Final = ("post",)


class ResourceView(toolkit.OAuthProtectedResourceMetadataView):  # type: ignore[misc]  # the library has no types
    """Describes /mcp, at the address of RFC 9728 and without its path, where older clients look."""

    def get_resource(self, request: HttpRequest) -> str:
        """Return the resource."""
        return resource_of(request)
