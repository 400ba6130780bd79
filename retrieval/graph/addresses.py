"""Normalised addresses of documents and link targets. Pure."""

import posixpath
import unicodedata
from dataclasses import dataclass
from typing import Final
from urllib.parse import SplitResult, unquote, urljoin, urlsplit

_WEB: Final = frozenset({"http", "https"})
_PAGE_SUFFIXES: Final = frozenset({".md", ".markdown", ".mdx", ".html", ".htm", ".xhtml", ".rst"})
_FOLDER_PAGES: Final = frozenset({"index", "readme", "default"})
_MAX_CHARACTERS: Final = 1000


@dataclass(frozen=True, slots=True)
class Place:
    """The location of a document: in its connection, and on the web."""

    connection_id: int
    path: str  #: Its identifier in the source: a path where the source has paths.
    uri: str

    @property
    def addresses(self) -> tuple[str, ...]:
        """The addresses that links to the document use."""
        return _addresses(self.connection_id, self.path, self.uri)

    def targets(self, target: str) -> tuple[str, ...]:
        """Return the possible addresses of a link in this document; none for a link within it.

        A relative link is resolved against the document's location, in its connection and on the web.
        """
        try:
            parts = urlsplit(target.strip().replace("\\", "/"))
            is_elsewhere = bool(parts.scheme or parts.netloc)
            if not (parts.path or is_elsewhere) or (parts.scheme and parts.scheme not in _WEB):
                return ()
            path = "" if is_elsewhere else unquote(parts.path)
            if path and not path.startswith("/"):
                folder = posixpath.dirname(self.path.replace("\\", "/"))
                path = posixpath.normpath(posixpath.join(folder, path))
                # It leads outside its connection.
                path = "" if path.split("/")[0] == ".." else path
            return _addresses(self.connection_id, path, urljoin(self.uri, parts.geturl()))
        except ValueError:
            return ()


def _addresses(connection_id: int, path: str, uri: str) -> tuple[str, ...]:
    try:
        parts = urlsplit(uri)
        web = _web(parts) if parts.scheme in _WEB and parts.hostname else ""
    except ValueError:
        web = ""
    local = f"path:{connection_id}:{_plain(path)}" if path and "://" not in path else ""
    return tuple(address for address in (local, web) if address and len(address) <= _MAX_CHARACTERS)


def _web(parts: SplitResult) -> str:
    """Return a web address without scheme, default port, "www." and fragment."""
    host = (parts.hostname or "").removeprefix("www.")
    port = f":{parts.port}" if parts.port not in {None, 80, 443} else ""
    query = f"?{parts.query}" if parts.query else ""
    return f"//{host}{port}/{_plain(unquote(parts.path))}{query}"


def _plain(path: str) -> str:
    """Return a path without a page's suffix, an index page's folder; generators drop underscores before names."""
    # An address can encode a NUL, which PostgreSQL cannot store.
    written = unicodedata.normalize("NFC", path.replace("\\", "/").replace("\0", ""))
    whole = posixpath.normpath("/" + written.lstrip("/"))
    whole = whole.replace("/_", "/")
    stem, suffix = posixpath.splitext(whole)
    plain = stem if suffix.lower() in _PAGE_SUFFIXES else whole
    folder, name = posixpath.split(plain)
    return (folder if name.lower() in _FOLDER_PAGES else plain).strip("/")
