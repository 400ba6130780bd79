"""What a web page says about itself: its links, its own address, whether it wants to be found."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from lxml import html
from lxml.etree import LxmlError

from corecube.connectors.types import ItemError
from corecube.connectors.web.links import normalised

HTML_TYPES: Final = frozenset({"text/html", "application/xhtml+xml"})
#: Bytes of a page in which links are looked for.
_SEARCHED: Final = 5 * 2**20
_MAX_LINKS: Final = 5000
#: Names under which a page's instructions speak to us.
_ADDRESSED: Final = ("robots", "corecube")
_HEADER: Final = "x-robots-tag"


@dataclass(frozen=True, slots=True)
class PageFacts:
    """What a page says about itself."""

    #: Addresses that it links to, normalised, in order, each once.
    links: tuple[str, ...] = ()
    #: The address that it calls its own, normalised; empty when it names none.
    canonical: str = ""
    #: Whether it may be taken in.
    index: bool = True


def facts_of(url: str, content: bytes, headers: Mapping[str, str], *, is_html: bool) -> PageFacts:
    """Return what a page, or another file by its headers, says about itself."""
    told = _directives(headers.get(_HEADER, ""))
    page = _parsed(content) if is_html else None
    if page is None:
        return PageFacts(index="noindex" not in told)
    for meta in page.iter("meta"):
        if str(meta.get("name", "")).strip().lower() in _ADDRESSED:
            told |= _words(str(meta.get("content", "")))
    base = _resolved(str(next((it.get("href") for it in page.iter("base") if it.get("href")), "")), url) or url
    links = () if "nofollow" in told else tuple(_links(page, base))
    return PageFacts(links, _canonical(page, base), index="noindex" not in told)


def _parsed(content: bytes) -> Any:  # noqa: ANN401 -- lxml has no types
    """Return a page's tree, None for what is none."""
    try:
        return html.document_fromstring(content[:_SEARCHED]) if content.strip() else None
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
    """Return an address, empty for mail, scripts and what cannot be read."""
    try:
        return normalised(target, base)
    except (ItemError, ValueError):
        return ""


def _directives(header: str) -> set[str]:
    """Return the instructions of an X-Robots-Tag header that are for everybody or for us."""
    words: set[str] = set()
    spoken_to = True
    for part in header.lower().split(","):
        name, colon, rest = part.partition(":")
        if colon and not name.strip().startswith(("unavailable_after", "max-")):
            spoken_to = name.strip() in _ADDRESSED
        if spoken_to:
            words |= _words(rest if colon else part)
    return words


def _words(text: str) -> set[str]:
    words = {word.strip() for word in text.lower().split(",")}
    return words | {"noindex", "nofollow"} if "none" in words else words
