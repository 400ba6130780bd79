"""Requests to the provider, with limits of size and time, without redirects, and with checked addresses.

Private addresses are allowed only for the issuer's host. Callers verify the content.
"""

import json
import logging
import re
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlencode

import httpcore2

from corecube.connectors.http import USER_AGENT, body_of, headers_of
from corecube.connectors.network import AddressGuard, Deadline, GuardedBackend
from corecube.connectors.types import ItemError
from corecube.oidc.problems import ProviderDownError, UntrustedAnswerError

logger = logging.getLogger(__name__)

#: Timeout of a complete request.
REQUEST_SECONDS: Final = 10.0
_STEP_SECONDS: Final = 5.0
_MAX_BYTES: Final = 1_000_000
_OK: Final = 200
_SERVER_ERROR: Final = 500
#: An error code of RFC 6749, section 5.2.
_ERROR_WORD: Final = re.compile(r"[a-z_]{1,40}")


def get_json(url: str, *, trusted_host: str, headers: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Return the JSON object at a URL; raise ProviderDownError or UntrustedAnswerError."""
    return _object(*_send("GET", url, trusted_host, headers or {}, b""))


def post_form(
    url: str, form: Mapping[str, str], *, trusted_host: str, headers: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Post a form and return the JSON object; raise ProviderDownError or UntrustedAnswerError."""
    sent = {"Content-Type": "application/x-www-form-urlencoded", **(headers or {})}
    return _object(*_send("POST", url, trusted_host, sent, urlencode(form).encode()))


def _send(method: str, url: str, trusted_host: str, headers: Mapping[str, str], content: bytes) -> tuple[int, bytes]:
    deadline = Deadline()
    deadline.start(REQUEST_SECONDS)
    backend = GuardedBackend(AddressGuard(trusted_hosts=frozenset({trusted_host})), deadline)
    sent = {"User-Agent": USER_AGENT, "Accept": "application/json", "Accept-Encoding": "gzip", **headers}
    timeouts = dict.fromkeys(("connect", "read", "write", "pool"), _STEP_SECONDS)
    raw_headers = [(name.encode("ascii"), value.encode("latin-1", "replace")) for name, value in sent.items()]
    try:
        with (
            httpcore2.ConnectionPool(network_backend=backend) as pool,
            pool.stream(
                method, url, headers=raw_headers, content=content, extensions={"timeout": timeouts}
            ) as response,
        ):
            return response.status, body_of(response.iter_stream(), headers_of(response.headers), _MAX_BYTES)
    except (httpcore2.TimeoutException, httpcore2.NetworkError, httpcore2.RemoteProtocolError, OSError) as error:
        raise ProviderDownError from error
    except ItemError as error:
        raise (ProviderDownError if error.reason == "unreachable" else UntrustedAnswerError) from error
    except (httpcore2.ProtocolError, httpcore2.UnsupportedProtocol) as error:
        raise UntrustedAnswerError from error


def _object(status: int, body: bytes) -> dict[str, Any]:
    if status >= _SERVER_ERROR:
        raise ProviderDownError
    try:
        found = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise UntrustedAnswerError from error
    if status != _OK or not isinstance(found, dict):
        # Only the error code is logged, such as "invalid_client" for a wrong secret.
        word = found.get("error") if isinstance(found, dict) else None
        is_word = isinstance(word, str) and _ERROR_WORD.fullmatch(word)
        logger.warning("oidc.request_failed status=%s error=%s", status, word if is_word else "-")
        raise UntrustedAnswerError
    return found
