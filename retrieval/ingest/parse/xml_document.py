"""XML: RSS and Atom feeds item by item, other documents as lines of "element: text"."""

from collections.abc import Iterator
from datetime import datetime
from email.utils import parsedate_to_datetime
from html import unescape
from typing import Final

from lxml import etree

from retrieval.errors import IngestError
from retrieval.ingest.parse.finish import finished, lowered, one_line
from retrieval.ingest.parse.html import blocks_of_content, parse_html
from retrieval.ingest.parse.xml_reading import local, name_of, tree_of
from retrieval.text.document import Block, BlockKind, ParsedDocument, RawDocument

#: Elements with the text of an item, most complete first.
_CONTENTS: Final = ("encoded", "content", "description", "summary")
_DATES: Final = ("updated", "modified", "pubdate", "published", "date", "lastbuilddate")
_ITEM_LEVEL: Final = 2
_MAX_ITEMS: Final = 10_000
_MAX_PARTS: Final = 100_000


def _feed(raw: RawDocument, root: etree._Element) -> ParsedDocument:
    items = [element for element in root.iter() if local(element) in {"item", "entry"}]
    if len(items) > _MAX_ITEMS:
        raise IngestError("too_large", f"The feed has more than {_MAX_ITEMS} items.")
    channel = next((element for element in root if local(element) == "channel"), root)
    facts = {
        "language": _text_of(channel, ("language",)),
        "description": _text_of(channel, ("description", "subtitle")),
        "modified": _date(_text_of(channel, _DATES)),
    }
    blocks = (block for item in items for block in _item(item))
    return finished(
        raw, source_type="feed", blocks=blocks, metadata=facts, explicit_title=_text_of(channel, ("title",))
    )


def _item(item: etree._Element) -> Iterator[Block]:
    title = _text_of(item, ("title",))
    yield Block(BlockKind.HEADING, title or _link(item) or "Untitled", level=_ITEM_LEVEL)
    facts = (_date(_text_of(item, _DATES)), _text_of(item, ("creator", "author")), _link(item))
    yield Block(BlockKind.PARAGRAPH, " · ".join(filter(None, facts)))
    for block in blocks_of_content(_content(item)):
        yield lowered(block, _ITEM_LEVEL)
    topics = dict.fromkeys(one_line(child.get("term") or child.text or "") for child in _children(item, "category"))
    if any(topics):
        yield Block(BlockKind.PARAGRAPH, f"Topics: {', '.join(filter(None, topics))}")


def _content(item: etree._Element) -> str:
    for name in _CONTENTS:
        for child in _children(item, name):
            markup = child.text or ""
            markup += "".join(etree.tostring(part, encoding="unicode") for part in child)
            if markup.strip():
                return markup
    return ""


def _children(element: etree._Element, name: str) -> Iterator[etree._Element]:
    return (child for child in element if local(child) == name)


def _text_of(element: etree._Element, names: tuple[str, ...]) -> str:
    """Return the text of the first child with one of the names, in their order; what is escaped twice is unescaped."""
    texts = (one_line(unescape("".join(child.itertext()))) for name in names for child in _children(element, name))
    return next(filter(None, texts), "")


def _link(item: etree._Element) -> str:
    links = [child for child in _children(item, "link") if child.get("rel", "alternate") == "alternate"]
    return next((one_line(link.get("href") or link.text or "") for link in links), "")


def _date(written: str) -> str:
    for read in (datetime.fromisoformat, parsedate_to_datetime):
        try:
            return read(written).isoformat()
        except ValueError:
            continue
    return written


def parse_xml(raw: RawDocument) -> ParsedDocument:
    """Return a feed, page or other XML. Raises IngestError: `corrupt` (also for entities), `unsupported_type` (svg)."""
    root = tree_of(raw.content)
    kind = local(root)
    if kind == "html":
        return parse_html(raw)
    if kind == "svg":
        raise IngestError("unsupported_type", "The file is a drawing.")
    if kind in {"rss", "rdf", "feed"}:
        return _feed(raw, root)
    if len(root) > _MAX_PARTS:
        raise IngestError("too_large", f"The file has more than {_MAX_PARTS} parts.")
    texts = ("\n".join(_lines(part, "")) for part in root)
    opening = _line(root, name_of(root), root.text or "")
    blocks = [Block(BlockKind.PARAGRAPH, text) for text in (*opening, *texts)]
    return finished(raw, source_type="xml", blocks=blocks)


def _lines(element: etree._Element, path: str) -> Iterator[str]:
    """Yield a line for each element with text or attributes; text that contains elements stays on one line."""
    name = name_of(element)
    if not name:
        return
    step = f"{path}.{name}" if path else name
    is_mixed = len(element) > 0 and any(one_line(text or "") for text in (element.text, *(it.tail for it in element)))
    if is_mixed:
        yield from _line(element, step, "".join(element.itertext()))
    else:
        yield from _line(element, step, element.text or "")
        for child in element:
            yield from _lines(child, step)


def _line(element: etree._Element, path: str, text: str) -> Iterator[str]:
    attributes = "".join(f' {etree.QName(key).localname}="{value}"' for key, value in element.items())
    text = one_line(text)
    if text or attributes:
        yield f"{path}{attributes}: {text}" if text else f"{path}{attributes}"
