"""Strict parsing of URLs."""

from typing import Final
from urllib.parse import urlsplit, urlunsplit

from corecube.connectors.types import ItemError
from corecube.metadata_addresses import REFUSAL, names_refused

_DEFAULT_PORTS: Final = {"http": 80, "https": 443}


def checked_url(url: str) -> str:
    """Return an http or https address without its fragment and with its host in ASCII.

    Raises ItemError "bad_address" for anything else and for an address with a user or a password,
    "private_address" for a link-local or metadata address.
    """
    try:
        parts = urlsplit(url)
        is_ipv6 = ":" in (parts.hostname or "")
        host = f"[{parts.hostname}]" if is_ipv6 else (parts.hostname or "").encode("idna").decode()
        port = parts.port
    except (ValueError, UnicodeError) as error:
        raise ItemError("bad_address", "The address is invalid.") from error
    if parts.scheme not in _DEFAULT_PORTS or not host:
        raise ItemError("bad_address", "The address must begin with http:// or https://.")
    if parts.username is not None or parts.password is not None:
        raise ItemError("bad_address", "The address must not contain a user or a password.")
    if names_refused(host):
        raise ItemError("private_address", REFUSAL)
    place = host if port in {None, _DEFAULT_PORTS[parts.scheme]} else f"{host}:{port}"
    return urlunsplit((parts.scheme, place, _printable(parts.path or "/"), _printable(parts.query), ""))


def origin(url: str) -> str:
    """Return scheme, host and port of an address."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


def _printable(text: str) -> str:
    """Return a path or query with all characters outside printable ASCII percent-encoded."""
    return "".join(
        char if "!" <= char <= "~" else "".join(f"%{byte:02X}" for byte in char.encode("utf-8", "replace"))
        for char in text
    )
