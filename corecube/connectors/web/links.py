"""Addresses as a crawl tells them apart, and which of them it follows."""

import re
from collections import Counter
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Final
from urllib.parse import parse_qsl, quote, unquote_to_bytes, urlencode, urljoin, urlsplit, urlunsplit

from corecube.connectors.types import ItemError
from corecube.connectors.urls import checked_url

#: Parameters that say where a visitor comes from, not what they see.
_TRACKING: Final = re.compile(
    r"utm_\w+|gclid|dclid|fbclid|msclkid|mc_[ce]id|_ga|_gl|igshid|yclid|ref_src"
    r"|phpsessid|jsessionid|sid|sessionid|session_id|aspsessionid\w*",
    re.IGNORECASE,
)
_SESSION_IN_PATH: Final = re.compile(r";(jsessionid|phpsessid)=[^/;?]*", re.IGNORECASE)
#: Left as they are in a path: everything that needs no percent sign there.
_SAFE: Final = "/:@!$&'()*+,;=~-._"
_MAX_CHARACTERS: Final = 2000
_MAX_SEGMENTS: Final = 24
#: A folder that stands in one path more often than this comes from a link that goes round.
_MAX_REPEATS: Final = 2
#: Queries of one path, and pages of one calendar, beyond which nothing new is expected.
_MAX_QUERIES: Final = 200
#: What no parser of documents reads; asked for only to be thrown away.
_NO_DOCUMENT: Final = frozenset(
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
    """Return an address in the one form of all that mean the same; raise ItemError "bad_address".

    Without its fragment, tracking parameters and session ids; parameters sorted, dot segments resolved, percent signs
    only where they are needed.
    """
    url = checked_url(urljoin(base, address.strip()))
    parts = urlsplit(url)
    path = _undotted(_clean(_SESSION_IN_PATH.sub("", parts.path)))
    query = sorted(pair for pair in parse_qsl(parts.query, keep_blank_values=True) if not _TRACKING.fullmatch(pair[0]))
    result = urlunsplit((parts.scheme, parts.netloc, path, urlencode(query), ""))
    if len(result) > _MAX_CHARACTERS:
        raise ItemError("bad_address", "The address is too long.")
    return result


def path_of(url: str) -> str:
    """Return path and query of an address without the leading slash, as patterns see it."""
    parts = urlsplit(url)
    path = unquote_to_bytes(parts.path).decode("utf-8", "replace").lstrip("/")
    return f"{path}?{parts.query}" if parts.query else path


@dataclass
class Frontiers:
    """Which addresses belong to a crawl: below its prefixes, and not on the way into a trap."""

    #: Host and path that addresses begin with, whatever their scheme.
    prefixes: tuple[str, ...]
    _queries: Counter[str] = field(default_factory=Counter)

    def holds(self, url: str) -> bool:
        """Return whether an address lies within the crawl."""
        return _place(url).startswith(self.prefixes)

    def holds_host(self, url: str) -> bool:
        """Return whether an address is on a host of the crawl, wherever there."""
        return any(prefix.partition("/")[0] == urlsplit(url).netloc for prefix in self.prefixes)

    def is_worth_asking(self, url: str) -> bool:
        """Return whether an address may lead to a document; each question about a new query of a path counts."""
        parts = urlsplit(url)
        segments = [it for it in parts.path.split("/") if it]
        repeats = Counter(segments)
        if len(segments) > _MAX_SEGMENTS or max(repeats.values(), default=0) > _MAX_REPEATS:
            return False
        if PurePosixPath(parts.path.lower()).suffix in _NO_DOCUMENT:
            return False
        if parts.query:
            self._queries[parts.path] += 1
        return self._queries[parts.path] <= _MAX_QUERIES


def prefix_of(url: str) -> str:
    """Return what the addresses below a given one begin with."""
    return _place(url)


def host_prefix(url: str) -> str:
    """Return what the addresses of a host begin with."""
    return f"{urlsplit(url).netloc}/"


def _place(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.netloc}{parts.path}"


def _clean(path: str) -> str:
    """Return a path with percent signs only where they are needed; an escaped slash stays one."""
    parts = re.split("%2f", path, flags=re.IGNORECASE)
    return "%2F".join(quote(unquote_to_bytes(part), safe=_SAFE) for part in parts)


def _undotted(path: str) -> str:
    """Return a path without dot segments (RFC 3986, 5.2.4), which an absolute address may still hold."""
    kept: list[str] = []
    segments = path.split("/")[1:]
    for segment in segments:
        if segment == "..":
            kept = kept[:-1]
        elif segment != ".":
            kept.append(segment)
    ends_in_folder = segments[-1:] in ([], ["."], [".."])
    return "/" + "/".join([*kept, ""] if ends_in_folder and kept else kept)
