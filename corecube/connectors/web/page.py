"""Facts of a web page and of a sitemap (sitemaps.org): links, the canonical address, and whether it may be indexed."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from itertools import islice
from typing import Any, Final

from lxml import etree, html
from lxml.etree import LxmlError

from corecube.connectors.http import gunzip
from corecube.connectors.types import ItemError
from corecube.connectors.web.links import normalised

HTML_TYPES: Final = frozenset({"text/html", "application/xhtml+xml"})
_MAX_BYTES: Final = 5 * 2**20
_MAX_LINKS: Final = 5000
_ROBOT_NAMES: Final = ("robots", "corecube")  #: Robot names whose directives apply.
MAX_BYTES: Final = 50 * 2**20  #: Maximum size of a sitemap by the protocol.
_MAX_ENTRIES: Final = 50_000
_GZIP: Final = b"\x1f\x8b"


@dataclass(frozen=True, slots=True)
class PageFacts:
    """Links and directives of a page."""

    links: tuple[str, ...] = ()  #: Normalised addresses of its links, in order, without duplicates.
    canonical: str = ""  #: Normalised canonical address; empty without one.
    index: bool = True


def facts_of(url: str, content: bytes, headers: Mapping[str, str], *, is_html: bool) -> PageFacts:
    """Return the facts of a page; for other files those of the headers."""
    directives: set[str] = set()
    applies = True  # to all robots or to this one
    for part in headers.get("x-robots-tag", "").lower().split(","):
        name, colon, rest = part.partition(":")
        if colon and not name.strip().startswith(("unavailable_after", "max-")):
            applies = name.strip() in _ROBOT_NAMES
        if applies:
            directives |= _directives(rest if colon else part)
    page = _parsed(content) if is_html else None
    if page is None:
        return PageFacts(index="noindex" not in directives)
    for meta in page.iter("meta"):
        if str(meta.get("name", "")).strip().lower() in _ROBOT_NAMES:
            directives |= _directives(str(meta.get("content", "")))
    base = _resolved(str(next((it.get("href") for it in page.iter("base") if it.get("href")), "")), url) or url
    links = () if "nofollow" in directives else tuple(_links(page, base))
    return PageFacts(links, _canonical(page, base), index="noindex" not in directives)


def _parsed(content: bytes) -> Any:  # noqa: ANN401 -- lxml has no types
    try:
        return html.document_fromstring(content[:_MAX_BYTES]) if content.strip() else None
    except (LxmlError, ValueError):
        return None


def _links(page: Any, base: str) -> Iterator[str]:  # noqa: ANN401
    seen: set[str] = set()
    for element in page.iter("a", "area"):
        target, relations = element.get("href"), str(element.get("rel", "")).lower().split()
        link = "" if not target or "nofollow" in relations else _resolved(str(target), base)
        if link and link not in seen:
            seen.add(link)
            yield link
        if len(seen) >= _MAX_LINKS:
            return


def _canonical(page: Any, base: str) -> str:  # noqa: ANN401
    for element in page.iter("link"):
        if "canonical" in str(element.get("rel", "")).lower().split() and element.get("href"):
            return _resolved(str(element.get("href")), base)
    return ""


def _resolved(target: str, base: str) -> str:
    try:
        return normalised(target, base)
    except (ItemError, ValueError):
        return ""


def _directives(text: str) -> set[str]:
    directives = {word.strip() for word in text.lower().split(",")}
    return directives | {"noindex", "nofollow"} if "none" in directives else directives


@dataclass(frozen=True, slots=True)
class Sitemap:
    """The addresses of a sitemap."""

    pages: Sequence[str] = ()
    sitemaps: Sequence[str] = ()  #: Other sitemaps, if this is an index.


def read_sitemap(content: bytes, base: str) -> Sitemap:
    """Return the addresses in a sitemap; raise ItemError "corrupt" or "too_large".

    The sitemap is XML, with or without namespace, or text with one address per line. Entries beyond 50 000 are
    ignored.
    """
    if content.startswith(_GZIP):
        content = gunzip(content, MAX_BYTES)
    if not content.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<"):
        lines = content.decode("utf-8", "replace").splitlines()
        return Sitemap(addresses(lines, base))
    return _read_xml(content, base)


def _read_xml(content: bytes, base: str) -> Sitemap:
    events = etree.iterparse(
        BytesIO(content), events=("start", "end"), resolve_entities=False, no_network=True, huge_tree=False
    )
    pages: list[str] = []
    sitemaps: list[str] = []
    try:
        for event, element in events:
            if element.getroottree().docinfo.internalDTD is not None:
                raise ItemError("corrupt", "The sitemap has a DTD, which is not allowed.")
            if event == "end" and _name(element) in {"url", "sitemap"}:
                target = sitemaps if _name(element) == "sitemap" else pages
                target += [str(it.text or "") for it in element if _name(it) == "loc"][:1]
                element.clear()
            if len(pages) + len(sitemaps) >= _MAX_ENTRIES:
                break
    except etree.LxmlError as error:
        raise ItemError("corrupt", "The sitemap is not well-formed XML.") from error
    return Sitemap(addresses(pages, base), addresses(sitemaps, base))


def _name(element: etree._Element) -> str:
    return etree.QName(element).localname if isinstance(element.tag, str) else ""


def addresses(texts: Iterable[str], base: str = "") -> list[str]:
    """Return normalised addresses in order, without duplicates and invalid ones."""
    return list(filter(None, dict.fromkeys(_resolved(text, base) for text in islice(texts, _MAX_ENTRIES))))
