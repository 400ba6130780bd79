"""Addresses of the web, read strictly."""

from typing import Final
from urllib.parse import SplitResult, urlsplit, urlunsplit

from corecube.connectors.types import ItemError
from corecube.metadata_addresses import REFUSAL, names_refused

_DEFAULT_PORTS: Final = {"http": 80, "https": 443}


def checked_url(url: str) -> str:
    """Return an http or https address without its fragment and with its host in ASCII.

    Raises ItemError "bad_address" for anything else, and for an address that holds a user or a password;
    "private_address" for a link-local or metadata address.
    """
    try:
        parts = urlsplit(url)
        host = (parts.hostname or "").encode("idna").decode() if not _is_ip6(parts) else f"[{parts.hostname}]"
        port = parts.port
    except (ValueError, UnicodeError) as error:
        raise ItemError("bad_address", "The address cannot be read.") from error
    if parts.scheme not in _DEFAULT_PORTS or not host:
        raise ItemError("bad_address", "The address is not one of http or https.")
    if parts.username is not None or parts.password is not None:
        raise ItemError("bad_address", "The address holds a user or a password.")
    if names_refused(host):
        raise ItemError("private_address", REFUSAL)
    place = host if port in {None, _DEFAULT_PORTS[parts.scheme]} else f"{host}:{port}"
    return urlunsplit((parts.scheme, place, _printable(parts.path or "/"), _printable(parts.query), ""))


def origin(url: str) -> str:
    """Return scheme, host and port of an address, as far as they differ from the usual."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


def _is_ip6(parts: SplitResult) -> bool:
    return ":" in (parts.hostname or "")


def _printable(text: str) -> str:
    """Return a path or query with what no request line can carry written as percent signs."""
    return "".join(
        sign if "!" <= sign <= "~" else "".join(f"%{byte:02X}" for byte in sign.encode("utf-8", "replace"))
        for sign in text
    )
