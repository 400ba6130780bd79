"""Normalised addresses, and the bounds of a crawl."""

import re
from collections import Counter
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Final
from urllib.parse import parse_qsl, quote, unquote_to_bytes, urlencode, urljoin, urlsplit, urlunsplit

from corecube.connectors.network import checked_url
from corecube.connectors.types import ItemError

#: Parameters that track a visitor or a session and do not change the page.
_TRACKING: Final = re.compile(
    r"utm_\w+|gclid|dclid|fbclid|msclkid|mc_[ce]id|_ga|_gl|igshid|yclid|ref_src"
    r"|phpsessid|jsessionid|sid|sessionid|session_id|aspsessionid\w*",
    re.IGNORECASE,
)
_SESSION_IN_PATH: Final = re.compile(r";(jsessionid|phpsessid)=[^/;?]*", re.IGNORECASE)
_SAFE: Final = "/:@!$&'()*+,;=~-._"  #: Characters that need no percent-encoding in a path.
_MAX_CHARACTERS: Final = 2000
_MAX_SEGMENTS: Final = 24
_MAX_REPEATS: Final = 2  #: A path that repeats a folder more often comes from circular links.
_MAX_QUERIES: Final = 200  #: Maximum number of different queries for one path: calendars have endless ones.
#: File types that no document parser reads.
_NOT_DOCUMENTS: Final = frozenset(
    f".{suffix}"
    for line in (
        "png jpg jpeg gif webp avif svg ico bmp tif tiff psd",
        "css js mjs map woff woff2 ttf otf eot wasm swf",
        "mp3 mp4 m4a m4v mov avi webm ogg wav flac",
        "zip gz tgz bz2 xz 7z rar tar jar war exe msi dmg iso deb rpm apk bin ics torrent",
    )
    for suffix in line.split()
)


def normalised(address: str, base: str = "") -> str:
    """Return an address in its normal form; raise ItemError "bad_address".

    The form has no fragment, tracking parameters or session ids; its parameters are sorted, its dot segments
    resolved, and only characters that need it are percent-encoded.
    """
    url = checked_url(urljoin(base, address.strip()))
    parts = urlsplit(url)
    # With minimal percent-encoding; an encoded slash stays encoded.
    pieces = re.split("%2f", _SESSION_IN_PATH.sub("", parts.path), flags=re.IGNORECASE)
    path = _undotted("%2F".join(quote(unquote_to_bytes(piece), safe=_SAFE) for piece in pieces))
    query = sorted(pair for pair in parse_qsl(parts.query, keep_blank_values=True) if not _TRACKING.fullmatch(pair[0]))
    result = urlunsplit((parts.scheme, parts.netloc, path, urlencode(query), ""))
    if len(result) > _MAX_CHARACTERS:
        raise ItemError("bad_address", "The address is too long.")
    return result


def path_of(url: str) -> str:
    """Return what patterns match: path and query of an address without the leading slash."""
    parts = urlsplit(url)
    path = unquote_to_bytes(parts.path).decode("utf-8", "replace").lstrip("/")
    return f"{path}?{parts.query}" if parts.query else path


@dataclass
class CrawlBounds:
    """Decides which addresses belong to a crawl: those below its prefixes that are not part of a crawler trap."""

    prefixes: tuple[str, ...]  #: Host and path prefixes, for every scheme.
    _queries: Counter[str] = field(default_factory=Counter)

    def contains(self, url: str) -> bool:
        """Return whether an address is below one of the prefixes."""
        return prefix_of(url).startswith(self.prefixes)

    def contains_host(self, url: str) -> bool:
        """Return whether an address is on a host of the crawl, with any path."""
        return any(prefix.partition("/")[0] == urlsplit(url).netloc for prefix in self.prefixes)

    def may_be_document(self, url: str) -> bool:
        """Return whether an address may be a document; each call for an address with a query counts for its path."""
        parts = urlsplit(url)
        segments = [it for it in parts.path.split("/") if it]
        repeats = Counter(segments)
        if len(segments) > _MAX_SEGMENTS or max(repeats.values(), default=0) > _MAX_REPEATS:
            return False
        if PurePosixPath(parts.path.lower()).suffix in _NOT_DOCUMENTS:
            return False
        if parts.query:
            self._queries[parts.path] += 1
        return self._queries[parts.path] <= _MAX_QUERIES


def prefix_of(url: str) -> str:
    """Return host and path of an address: the prefix of the addresses below it."""
    parts = urlsplit(url)
    return f"{parts.netloc}{parts.path}"


def _undotted(path: str) -> str:
    """Return a path without dot segments (RFC 3986, 5.2.4), which absolute addresses may contain."""
    result: list[str] = []
    segments = path.split("/")[1:]
    for segment in segments:
        if segment == "..":
            result = result[:-1]
        elif segment != ".":
            result.append(segment)
    ends_in_folder = segments[-1:] in ([], ["."], [".."])
    return "/" + "/".join([*result, ""] if ends_in_folder and result else result)
