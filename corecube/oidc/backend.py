"""The authentication backend of the provider: the code flow of mozilla-django-oidc with stricter verification."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from django.conf import settings
from django.http import HttpRequest
from mozilla_django_oidc.auth import OIDCAuthenticationBackend

from corecube.connectors.http import basic_authorization
from corecube.database import release_connection
from corecube.models import User
from corecube.oidc.accounts import user_of
from corecube.oidc.claims import person_of, verified_claims
from corecube.oidc.problems import UntrustedAnswerError
from corecube.oidc.provider import Provider, get_json, provider


class LibrarySettings:
    """Gives a class of the library its settings from those of CoreCube."""

    @staticmethod
    def get_settings(attr: str, *args: object) -> object:
        """Return a setting of the library."""
        if attr == "OIDC_OP_AUTHORIZATION_ENDPOINT":
            return provider().authorization_url
        return {
            "OIDC_RP_CLIENT_ID": settings.CORECUBE_OIDC_CLIENT_ID,
            "OIDC_RP_SCOPES": settings.CORECUBE_OIDC_SCOPES,
            "OIDC_USE_PKCE": True,
            "OIDC_AUTHENTICATION_CALLBACK_URL": "oidc_callback",
            "LOGIN_REDIRECT_URL": settings.LOGIN_REDIRECT_URL,
        }.get(attr, args[0] if args else None)


class ProviderBackend(LibrarySettings, OIDCAuthenticationBackend):  # type: ignore[misc]  # the library has no types
    """Authenticates users of the configured provider. All failures are SignInErrors."""

    def __init__(self) -> None:
        # Created for every request of a session, so it must not contact the provider.
        self.OIDC_RP_CLIENT_ID = settings.CORECUBE_OIDC_CLIENT_ID
        self.OIDC_RP_CLIENT_SECRET = settings.CORECUBE_OIDC_CLIENT_SECRET
        self.UserModel = User

    def authenticate(self, request: HttpRequest | None, *, nonce: str, code_verifier: str) -> User | None:
        """Return the user of a sign-in with an authorization code; raise SignInError."""
        # The provider may be slow, and the database is not needed until it responds.
        release_connection()
        user: User | None = super().authenticate(request, nonce=nonce, code_verifier=code_verifier)
        return user

    def get_token(self, payload: Mapping[str, str]) -> dict[str, Any]:
        """Exchange the code for tokens."""
        at, form = provider(), dict(payload)
        headers: Mapping[str, str] = {}
        secret = form.pop("client_secret")
        form["redirect_uri"] = settings.CORECUBE_OIDC_CALLBACK_URL or form["redirect_uri"]
        if secret and at.secret_in_form:
            form["client_secret"] = secret
        elif secret:
            headers = basic_authorization(quote(form["client_id"], safe=""), quote(secret, safe=""))
        return get_json(at.token_url, trusted_host=at.host, headers=headers, form=form)

    def verify_token(self, token: object, *, nonce: str) -> dict[str, Any]:
        """Return the claims of an ID token; raise UntrustedAnswerError."""
        if not isinstance(token, str):
            raise UntrustedAnswerError
        at = provider()
        keys = get_json(at.jwks_url, trusted_host=at.host)
        return verified_claims(token, keys, issuer=at.issuer, client_id=self.OIDC_RP_CLIENT_ID, nonce=nonce)

    def get_or_create_user(self, access_token: object, id_token: str, payload: Mapping[str, Any]) -> User:  # noqa: ARG002 -- the library's signature
        """Return the user of a verified token; raise SignInError."""
        claims = {**_userinfo(provider(), access_token, payload["sub"]), **payload}
        return user_of(person_of(claims, groups_claim=settings.CORECUBE_OIDC_GROUPS_CLAIM))

    def get_user(self, user_id: int) -> User | None:
        """Return the active user of a session."""
        return User.objects.filter(pk=user_id, is_active=True).first()


def _userinfo(at: Provider, access_token: object, subject: str) -> dict[str, Any]:
    """Return the userinfo claims of the same person; empty without an endpoint."""
    if not at.userinfo_url:
        return {}
    if not isinstance(access_token, str) or not access_token.isascii() or not access_token.isprintable():
        raise UntrustedAnswerError
    claims = get_json(at.userinfo_url, trusted_host=at.host, headers={"Authorization": f"Bearer {access_token}"})
    if claims.get("sub") != subject:
        raise UntrustedAnswerError
    return claims
