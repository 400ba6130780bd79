"""Asking the provider behind the browser's back: few bytes, little time, no redirects, addresses that were checked.

Private addresses are reached on the issuer's own host only. What the answers say is checked by who reads them.
"""

import json
import logging
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlencode

import httpcore2

from corecube.connectors.http import USER_AGENT, body_of, headers_of
from corecube.connectors.network import AddressGuard, Deadline, GuardedBackend
from corecube.connectors.types import ItemError
from corecube.oidc.problems import ProviderDownError, UntrustedAnswerError

logger = logging.getLogger(__name__)

#: Of one request, from its start to the answer's last byte, in seconds.
REQUEST_SECONDS: Final = 10.0
_STEP_SECONDS: Final = 5.0
_MAX_BYTES: Final = 1_000_000
_OK: Final = 200
_SERVER_ERROR: Final = 500
#: What RFC 6749, section 5.2, calls an error.
_ERROR_WORD: Final = re.compile(r"[a-z_]{1,40}")


def get_json(url: str, *, trusted_host: str, headers: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Return the JSON object at an address; raise ProviderDownError, or UntrustedAnswerError for anything else."""
    return _object(*_send("GET", url, trusted_host, headers or {}, b""))


def post_form(
    url: str, form: Mapping[str, str], *, trusted_host: str, headers: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Return the JSON object that answers a form; raise ProviderDownError, or UntrustedAnswerError otherwise."""
    sent = {"Content-Type": "application/x-www-form-urlencoded", **(headers or {})}
    return _object(*_send("POST", url, trusted_host, sent, urlencode(form).encode()))


def _send(method: str, url: str, trusted_host: str, headers: Mapping[str, str], content: bytes) -> tuple[int, bytes]:
    deadline = Deadline()
    deadline.start(REQUEST_SECONDS)
    backend = GuardedBackend(AddressGuard(trusted_hosts=frozenset({trusted_host})), deadline)
    sent = {"User-Agent": USER_AGENT, "Accept": "application/json", "Accept-Encoding": "gzip", **headers}
    timeouts = dict.fromkeys(("connect", "read", "write", "pool"), _STEP_SECONDS)
    try:
        with (
            httpcore2.ConnectionPool(network_backend=backend) as pool,
            pool.stream(method, url, headers=_raw(sent), content=content, extensions={"timeout": timeouts}) as answer,
        ):
            return answer.status, body_of(answer.iter_stream(), headers_of(answer.headers), _MAX_BYTES)
    except (httpcore2.TimeoutException, httpcore2.NetworkError, httpcore2.RemoteProtocolError, OSError) as error:
        raise ProviderDownError from error
    except ItemError as error:
        raise (ProviderDownError if error.reason == "unreachable" else UntrustedAnswerError) from error
    except (httpcore2.ProtocolError, httpcore2.UnsupportedProtocol) as error:
        raise UntrustedAnswerError from error


def _raw(headers: Mapping[str, str]) -> Sequence[tuple[bytes | str, bytes | str]]:
    return [(name.encode("ascii"), value.encode("latin-1", "replace")) for name, value in headers.items()]


def _object(status: int, body: bytes) -> dict[str, Any]:
    if status >= _SERVER_ERROR:
        raise ProviderDownError
    try:
        found = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise UntrustedAnswerError from error
    if status != _OK or not isinstance(found, dict):
        # "invalid_client" is a wrong secret; nothing else of an answer is written down.
        word = found.get("error") if isinstance(found, dict) else None
        is_word = isinstance(word, str) and _ERROR_WORD.fullmatch(word)
        logger.warning("oidc.answer status=%s error=%s", status, word if is_word else "-")
        raise UntrustedAnswerError
    return found
