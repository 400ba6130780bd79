"""The configured provider with its endpoints, from its discovery document or from the settings."""

import threading
import time
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

from django.conf import settings

from corecube.oidc.fetch import get_json
from corecube.oidc.problems import UntrustedAnswerError

#: Cache time of the discovery document.
_CACHE_SECONDS: Final = 600.0


@dataclass(frozen=True, slots=True)
class Provider:
    """The endpoints of the provider."""

    issuer: str
    authorization_url: str
    token_url: str
    jwks_url: str
    #: Empty if all claims are in ID tokens.
    userinfo_url: str = ""
    #: The URL to sign out of the provider; empty without one.
    sign_out_url: str = ""
    #: Whether the client secret is sent in the form instead of the Authorization header.
    secret_in_form: bool = False

    @property
    def host(self) -> str:
        """The host of the issuer in lower case."""
        return urlsplit(self.issuer).hostname or ""


_cache: dict[str, tuple[float, Provider]] = {}
_lock: Final = threading.Lock()


def is_configured() -> bool:
    """Return whether a provider is configured."""
    return bool(settings.CORECUBE_OIDC_ISSUER)


def provider() -> Provider:
    """Return the configured provider; raise ProviderDownError or UntrustedAnswerError.

    Each process caches the discovery document for ten minutes.
    """
    issuer: str = settings.CORECUBE_OIDC_ISSUER
    if settings.CORECUBE_OIDC_AUTHORIZATION_URL:
        return _from_settings(issuer)
    with _lock:
        at, found = _cache.get(issuer, (0.0, None))
    if found is not None and time.monotonic() - at < _CACHE_SECONDS:
        return found
    fresh = _discovered(issuer)
    with _lock:
        _cache[issuer] = (time.monotonic(), fresh)
    return fresh


def _from_settings(issuer: str) -> Provider:
    return Provider(
        issuer=issuer,
        authorization_url=settings.CORECUBE_OIDC_AUTHORIZATION_URL,
        token_url=settings.CORECUBE_OIDC_TOKEN_URL,
        jwks_url=settings.CORECUBE_OIDC_JWKS_URL,
        userinfo_url=settings.CORECUBE_OIDC_USERINFO_URL,
        sign_out_url=settings.CORECUBE_OIDC_SIGN_OUT_URL,
    )


def _discovered(issuer: str) -> Provider:
    """Return the provider from its discovery document (OpenID Connect Discovery 1.0, section 4)."""
    host = urlsplit(issuer).hostname or ""
    found = get_json(issuer.rstrip("/") + "/.well-known/openid-configuration", trusted_host=host)
    if found.get("issuer") != issuer:
        raise UntrustedAnswerError("The issuer of the provider differs from CORECUBE_OIDC_ISSUER.")
    methods = found.get("token_endpoint_auth_methods_supported")
    return Provider(
        issuer=issuer,
        authorization_url=_address(found, "authorization_endpoint", issuer),
        token_url=_address(found, "token_endpoint", issuer),
        jwks_url=_address(found, "jwks_uri", issuer),
        userinfo_url=_address(found, "userinfo_endpoint", issuer, required=False),
        sign_out_url=_address(found, "end_session_endpoint", issuer, required=False),
        # The header is the default (section 3).
        secret_in_form=isinstance(methods, list) and "client_secret_basic" not in methods,
    )


def _address(found: dict[str, Any], name: str, issuer: str, *, required: bool = True) -> str:
    """Return a published URL, which must use HTTPS if the issuer does."""
    value = found.get(name, "")
    if not value and not required:
        return ""
    schemes = {"https"} if issuer.startswith("https:") else {"http", "https"}
    if not isinstance(value, str) or urlsplit(value).scheme not in schemes:
        raise UntrustedAnswerError
    return value
