"""Facts of a web page: its links, its canonical address, and whether it may be indexed."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from lxml import html
from lxml.etree import LxmlError

from corecube.connectors.types import ItemError
from corecube.connectors.web.links import normalised

HTML_TYPES: Final = frozenset({"text/html", "application/xhtml+xml"})
#: Bytes of a page that are searched for links.
_MAX_BYTES: Final = 5 * 2**20
_MAX_LINKS: Final = 5000
#: Robot names whose directives apply.
_ROBOT_NAMES: Final = ("robots", "corecube")


@dataclass(frozen=True, slots=True)
class PageFacts:
    """Links and directives of a page."""

    #: Normalised addresses of its links, in order, without duplicates.
    links: tuple[str, ...] = ()
    #: Normalised canonical address; empty without one.
    canonical: str = ""
    #: Whether the page may be indexed.
    index: bool = True


def facts_of(url: str, content: bytes, headers: Mapping[str, str], *, is_html: bool) -> PageFacts:
    """Return the facts of a page; for other files those of the headers."""
    directives = _header_directives(headers.get("x-robots-tag", ""))
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
    """Return a page's tree, None for invalid HTML."""
    try:
        return html.document_fromstring(content[:_MAX_BYTES]) if content.strip() else None
    except (LxmlError, ValueError):
        return None


def _links(page: Any, base: str) -> Iterator[str]:  # noqa: ANN401
    seen: set[str] = set()
    for element in page.iter("a", "area"):
        target, relations = element.get("href"), str(element.get("rel", "")).lower().split()
        if not target or "nofollow" in relations:
            continue
        link = _resolved(str(target), base)
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
    """Return a normalised address, empty for mail, scripts and invalid addresses."""
    try:
        return normalised(target, base)
    except (ItemError, ValueError):
        return ""


def _header_directives(header: str) -> set[str]:
    """Return the directives of an X-Robots-Tag header for all robots or for this one."""
    directives: set[str] = set()
    applies = True
    for part in header.lower().split(","):
        name, colon, rest = part.partition(":")
        if colon and not name.strip().startswith(("unavailable_after", "max-")):
            applies = name.strip() in _ROBOT_NAMES
        if applies:
            directives |= _directives(rest if colon else part)
    return directives


def _directives(text: str) -> set[str]:
    directives = {word.strip() for word in text.lower().split(",")}
    return directives | {"noindex", "nofollow"} if "none" in directives else directives
