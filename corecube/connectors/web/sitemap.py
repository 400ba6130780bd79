"""Sitemaps and their indexes (sitemaps.org), plain or compressed."""

from collections.abc import Sequence
from dataclasses import dataclass
from io import BytesIO
from typing import Final

from lxml import etree

from corecube.connectors.http import gunzip
from corecube.connectors.types import ItemError
from corecube.connectors.web.links import normalised

#: Maximum size of a sitemap by the protocol.
MAX_BYTES: Final = 50 * 2**20
_MAX_ENTRIES: Final = 50_000
_GZIP: Final = b"\x1f\x8b"


@dataclass(frozen=True, slots=True)
class Sitemap:
    """The addresses of a sitemap."""

    pages: Sequence[str] = ()
    #: Other sitemaps, if this is an index.
    sitemaps: Sequence[str] = ()


def read_sitemap(content: bytes, base: str) -> Sitemap:
    """Return the addresses in a sitemap; raise ItemError "corrupt" or "too_large".

    The sitemap is XML, with or without namespace, or text with one address per line. Entries beyond 50 000 are
    ignored.
    """
    if content.startswith(_GZIP):
        content = gunzip(content, MAX_BYTES)
    if not content.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<"):
        lines = content.decode("utf-8", "replace").splitlines()
        return Sitemap(_addresses(lines, base))
    return _read_xml(content, base)


def _read_xml(content: bytes, base: str) -> Sitemap:
    events = etree.iterparse(
        BytesIO(content), events=("start", "end"), resolve_entities=False, no_network=True, huge_tree=False
    )
    pages: list[str] = []
    sitemaps: list[str] = []
    try:
        for event, element in events:
            _refuse_doctype(element)
            if event == "end" and _name(element) in {"url", "sitemap"}:
                target = sitemaps if _name(element) == "sitemap" else pages
                target += [str(it.text or "") for it in element if _name(it) == "loc"][:1]
                element.clear()
            if len(pages) + len(sitemaps) >= _MAX_ENTRIES:
                break
    except etree.LxmlError as error:
        raise ItemError("corrupt", "The sitemap is not well-formed XML.") from error
    return Sitemap(_addresses(pages, base), _addresses(sitemaps, base))


def _refuse_doctype(element: etree._Element) -> None:
    if element.getroottree().docinfo.internalDTD is not None:
        raise ItemError("corrupt", "The sitemap has a DTD, which is not allowed.")


def _name(element: etree._Element) -> str:
    """Return an element's name without its namespace."""
    return etree.QName(element).localname if isinstance(element.tag, str) else ""


def _addresses(texts: Sequence[str], base: str) -> list[str]:
    found: dict[str, None] = {}
    for text in texts[:_MAX_ENTRIES]:
        try:
            found[normalised(text, base)] = None
        except (ItemError, ValueError):
            continue
    return list(found)
