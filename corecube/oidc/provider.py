"""The configured provider: its endpoints, from its discovery document or from the settings, and requests to it.

Requests have limits of size and time, no redirects, and checked addresses: private addresses are allowed only for the
issuer's host. Callers verify the content.
"""

import json
import logging
import re
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

from django.conf import settings

from corecube.connectors.http import HttpClient, HttpLimits, RequestOptions
from corecube.connectors.network import AddressGuard
from corecube.connectors.types import ItemError
from corecube.oidc.problems import ProviderDownError, UntrustedAnswerError

_CACHE_SECONDS: Final = 600.0
logger = logging.getLogger(__name__)

REQUEST_SECONDS: Final = 10.0  #: Timeout of a complete request.
_STEP_SECONDS: Final = 5.0
_MAX_BYTES: Final = 1_000_000
_ERROR_WORD: Final = re.compile(r"[a-z_]{1,40}")  #: An error code of RFC 6749, section 5.2.
_lock: Final = threading.Lock()


@dataclass(frozen=True, slots=True)
class Provider:
    """The endpoints of the provider."""

    issuer: str
    authorization_url: str
    token_url: str
    jwks_url: str
    userinfo_url: str = ""  #: Empty if all claims are in ID tokens.
    sign_out_url: str = ""  #: The URL to sign out of the provider; empty without one.
    #: Whether the client secret is sent in the form instead of the Authorization header.
    secret_in_form: bool = False

    @property
    def host(self) -> str:
        """The host of the issuer in lower case."""
        return urlsplit(self.issuer).hostname or ""


_cache: dict[str, tuple[float, Provider]] = {}


def is_configured() -> bool:
    """Return whether a provider is configured."""
    return bool(settings.CORECUBE_OIDC_ISSUER)


def provider() -> Provider:
    """Return the provider, cached for ten minutes per process; raise ProviderDownError or UntrustedAnswerError."""
    issuer: str = settings.CORECUBE_OIDC_ISSUER
    if settings.CORECUBE_OIDC_AUTHORIZATION_URL:
        return Provider(
            issuer=issuer,
            authorization_url=settings.CORECUBE_OIDC_AUTHORIZATION_URL,
            token_url=settings.CORECUBE_OIDC_TOKEN_URL,
            jwks_url=settings.CORECUBE_OIDC_JWKS_URL,
            userinfo_url=settings.CORECUBE_OIDC_USERINFO_URL,
            sign_out_url=settings.CORECUBE_OIDC_SIGN_OUT_URL,
        )
    with _lock:
        at, found = _cache.get(issuer, (0.0, None))
    if found is not None and time.monotonic() - at < _CACHE_SECONDS:
        return found
    fresh = _discovered(issuer)
    with _lock:
        _cache[issuer] = (time.monotonic(), fresh)
    return fresh


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


def get_json(
    url: str, *, trusted_host: str, headers: Mapping[str, str] | None = None, form: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Return the JSON object at a URL, or in answer to a form; raise ProviderDownError or UntrustedAnswerError."""
    sent = {"Accept": "application/json", **(headers or {})}
    if form is not None:
        sent["Content-Type"] = "application/x-www-form-urlencoded"
    content = None if form is None else urlencode(form).encode()
    limits = HttpLimits(
        max_bytes=_MAX_BYTES, timeout_seconds=_STEP_SECONDS, request_seconds=REQUEST_SECONDS, attempts=1
    )
    try:
        with HttpClient(limits, AddressGuard(trusted_hosts=frozenset({trusted_host}))) as client:
            response = client.get(url, RequestOptions(headers=sent, follow=False, content=content))
    except ItemError as error:
        is_down = error.reason in {"timeout", "unreachable"}
        raise (ProviderDownError if is_down else UntrustedAnswerError) from error
    return _object(response.status, response.body)


def _object(status: int, body: bytes) -> dict[str, Any]:
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        raise ProviderDownError
    try:
        found = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise UntrustedAnswerError from error
    if status != HTTPStatus.OK or not isinstance(found, dict):
        # Only the error code is logged, such as "invalid_client" for a wrong secret.
        word = found.get("error") if isinstance(found, dict) else None
        is_word = isinstance(word, str) and _ERROR_WORD.fullmatch(word)
        logger.warning("oidc.request_failed status=%s error=%s", status, word if is_word else "-")
        raise UntrustedAnswerError
    return found
