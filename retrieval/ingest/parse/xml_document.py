"""XML that is no format of its own: each part below the root as lines of "element: text"."""

from collections.abc import Iterator
from typing import Final

from lxml import etree

from retrieval.errors import IngestError
from retrieval.ingest.parse.feed import FEED_ROOTS, feed_of
from retrieval.ingest.parse.finish import finished, one_line
from retrieval.ingest.parse.html import parse_html
from retrieval.ingest.parse.xml_tree import local, name_of, tree_of
from retrieval.text.document import Block, BlockKind, ParsedDocument, RawDocument

_MAX_PARTS: Final = 100_000


def parse_xml(raw: RawDocument) -> ParsedDocument:
    """Return a feed, a web page or any other document in XML.

    Raises IngestError: `corrupt` for damaged XML and for entity declarations, `unsupported_type` for a drawing.
    """
    root = tree_of(raw.content)
    kind = local(root)
    if kind == "html":
        return parse_html(raw)
    if kind == "svg":
        raise IngestError("unsupported_type", "The file is a drawing.")
    if kind in FEED_ROOTS:
        return feed_of(raw, root)
    if len(root) > _MAX_PARTS:
        raise IngestError("too_large", f"The file has more than {_MAX_PARTS} parts.")
    texts = ("\n".join(_lines(part, "")) for part in root)
    opening = _line(root, name_of(root), root.text or "")
    blocks = [Block(BlockKind.PARAGRAPH, text) for text in (*opening, *texts)]
    return finished(raw, source_type="xml", blocks=blocks)


def _lines(element: etree._Element, path: str) -> Iterator[str]:
    """Yield a line for each element that has text or attributes of its own; text with marked words stays together."""
    name = name_of(element)
    if not name:
        return
    step = f"{path}.{name}" if path else name
    if _is_mixed(element):
        yield from _line(element, step, "".join(element.itertext()))
    else:
        yield from _line(element, step, element.text or "")
        for child in element:
            yield from _lines(child, step)


def _is_mixed(element: etree._Element) -> bool:
    """Return True for text with elements inside it."""
    return len(element) > 0 and any(one_line(text or "") for text in (element.text, *(it.tail for it in element)))


def _line(element: etree._Element, path: str, text: str) -> Iterator[str]:
    attributes = "".join(f' {etree.QName(key).localname}="{value}"' for key, value in element.items())
    text = one_line(text)
    if text or attributes:
        yield f"{path}{attributes}: {text}" if text else f"{path}{attributes}"
