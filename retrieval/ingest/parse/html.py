"""Web pages and fragments of HTML: the content as headings, paragraphs, lists, tables and code."""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from lxml import etree
from lxml.html import HtmlElement, HTMLParser, document_fromstring

from retrieval.errors import IngestError
from retrieval.ingest.parse.builder import BlockBuilder
from retrieval.ingest.parse.decoding import charset_of, decode
from retrieval.ingest.parse.finish import finished, one_line, tidy
from retrieval.ingest.parse.html_main import drop_invisible, main_content
from retrieval.text.document import Block, ParsedDocument, RawDocument

_STRUCTURE: Final = ("table", "h1", "h2", "h3", "h4", "pre")
_MAX_CELL_CHARACTERS: Final = 2000  #: A cell with more text is a column of a page, not a value.
_MAX_SPAN: Final = 50
_CHARSET: Final = re.compile(
    rb"<(?:meta[^>]{0,200}?charset|\?xml[^>]{0,80}?encoding)\s*=\s*[\"']?([\w-]+)", re.IGNORECASE
)
#: References to characters that XML forbids: a tree with one cannot be changed.
_CONTROL_REFERENCE: Final = re.compile(
    r"&#(?:x0*(?:[0-8bcef]|1[0-9a-f]|fff[ef])(?![0-9a-f])|0*(?:[0-8]|1[124-9]|2[0-9]|3[01]|6553[45])(?![0-9]));?",
    re.IGNORECASE,
)
_TAG: Final = re.compile(r"<[a-zA-Z/]")
_SNIFFED_BYTES: Final = 4096
_MAX_DEPTH: Final = 120  #: Deeper elements are read as plain text; real pages are far less deep.
_BLOCKS: Final = frozenset({
    "address", "article", "aside", "blockquote", "body", "caption", "center", "details", "dd", "div", "dl",
    "dt", "fieldset", "figcaption", "figure", "footer", "form", "header", "hr", "html", "legend", "li",
    "main", "menu", "nav", "ol", "p", "section", "summary", "ul", "table", "thead", "tbody", "tfoot", "tr",
    "td", "th",
})  # fmt: skip
#: Small boxes inside the text whose headings are labels, not sections.
_BOXES: Final = frozenset({"note", "tip", "warning", "caution", "important", "danger", "info", "hint", "admonition"})
_META: Final = {
    "author": "author",
    "description": "description",
    "keywords": "keywords",
    "date": "created",
    "article:published_time": "created",
    "article:modified_time": "modified",
    "last-modified": "modified",
}


def _is_data_table(table: HtmlElement) -> bool:
    if table.get("role") in ("presentation", "none"):
        return False
    if table.find(".//tr") is None or any(element is not table for element in table.iter(*_STRUCTURE)):
        return False
    return all(sum(map(len, cell.itertext())) <= _MAX_CELL_CHARACTERS for cell in table.iter("td", "th"))


def _cells(row: HtmlElement, open_spans: dict[int, tuple[int, str]]) -> Iterator[str]:
    """Yield the row's texts; `open_spans` has, by column, the remaining rows and the text."""
    column = 0
    for cell in row.iterchildren("td", "th"):
        while column in open_spans:
            yield _continued(column, open_spans)
            column += 1
        for block in cell.iter("p", "div", "br", "li", "dd", "dt"):
            block.text = f" {block.text or ''}"
            block.tail = f" {block.tail or ''}"
        text = " ".join("".join(cell.itertext()).split())
        if _span(cell, "rowspan") > 1:
            open_spans[column] = (_span(cell, "rowspan") - 1, text)
        yield text
        yield from [""] * (_span(cell, "colspan") - 1)
        column += _span(cell, "colspan")
    while column in open_spans:
        yield _continued(column, open_spans)
        column += 1


def _continued(column: int, open_spans: dict[int, tuple[int, str]]) -> str:
    left, text = open_spans.pop(column)
    if left > 1:
        open_spans[column] = (left - 1, text)
    return text


def _span(cell: HtmlElement, name: str) -> int:
    written = cell.get(name, "1").strip()
    return max(1, min(int(written), _MAX_SPAN)) if written.isdecimal() and len(written) <= len("9999") else 1


def parse_html(raw: RawDocument) -> ParsedDocument:
    """Return the document of a web page without its navigation, headers and footers."""
    page = _page(decode(raw.content, charset_of(raw.media_type) or _declared_charset(raw.content)))
    metadata = {"language": page.get("lang", "")}
    for meta in page.iter("meta"):
        key = _META.get((meta.get("name") or meta.get("property") or meta.get("http-equiv") or "").lower())
        if key:
            metadata.setdefault(key, meta.get("content", ""))
    title = one_line(page.findtext(".//title") or "")
    blocks = _Reader().read(main_content(page))
    return finished(raw, source_type="html", blocks=blocks, metadata=metadata, property_title=title)


def blocks_of_content(markup: str) -> list[Block]:
    """Return the blocks of an untrusted piece of HTML, without scripts and navigation; plain text is allowed."""
    return _Reader().read(main_content(_page(f"<div>{markup}</div>"))) if markup.strip() else []


def blocks_of_fragment(markup: str) -> list[Block]:
    """Return the blocks of a piece of HTML inside Markdown."""
    if not _TAG.search(markup):
        return []
    return _Reader().read(_page(f"<div>{markup}</div>"))


def blocks_of_page(content: bytes, charset: str = "") -> list[Block]:
    """Return the blocks of all visible content of a page without navigation, such as a chapter or a mail.

    `charset` is the one that the source names. Raises IngestError `empty`, `encoding`, `unsupported_type`.
    """
    page = _page(decode(content, charset or _declared_charset(content)))
    drop_invisible(page)
    return _Reader().read(page)


def _page(markup: str) -> HtmlElement:
    # Bytes in a known encoding: for text, lxml refuses a page that declares another one.
    parser = HTMLParser(encoding="utf-8", remove_comments=True, remove_pis=True, no_network=True, huge_tree=False)
    try:
        return document_fromstring(
            _CONTROL_REFERENCE.sub("", tidy(markup)).encode(), parser=parser, ensure_head_body=True
        )
    except etree.ParserError as error:
        raise IngestError("empty", "There is no text in the page.") from error


def _declared_charset(content: bytes) -> str:
    found = _CHARSET.search(content[:_SNIFFED_BYTES])
    return found[1].decode("ascii") if found else ""


class _Reader:
    def __init__(self) -> None:
        self._builder = BlockBuilder()
        self._run: list[str] = []
        self._lists: list[int | None] = []  #: One entry for each open list: the next number, or None for bullets.
        self._marker = ""
        self._depth = 0
        self._handlers: Mapping[str, Callable[[HtmlElement], None]] = {
            **dict.fromkeys(("h1", "h2", "h3", "h4", "h5", "h6"), self._heading),
            **dict.fromkeys(("ul", "ol", "dl", "menu"), self._list),
            **dict.fromkeys(("li", "dt"), self._item),
            **dict.fromkeys(("pre", "listing", "xmp"), self._code),
            "table": self._table,
            "br": lambda _: self._run.append("\v"),
            "a": self._link,
            "img": lambda image: self._run.append(f" {image.get('alt', '')} "),
            "sup": self._superscript,
            "head": lambda _: None,
        }

    def read(self, root: HtmlElement) -> list[Block]:
        self._visit(root)
        self._close_run()
        return self._builder.blocks()

    def _visit(self, element: HtmlElement) -> None:
        if self._depth >= _MAX_DEPTH:
            self._run.extend(element.itertext())
            return
        self._depth += 1
        handler = self._handlers.get(element.tag)
        if handler:
            handler(element)
        elif element.tag in _BLOCKS:
            self._block(element)
        else:
            self._children(element)
        self._depth -= 1

    def _children(self, element: HtmlElement) -> None:
        self._run.append(element.text or "")
        for child in element:
            if isinstance(child.tag, str):
                self._visit(child)
            self._run.append(child.tail or "")

    def _block(self, element: HtmlElement) -> None:
        self._close_run()
        self._children(element)
        self._close_run()

    def _close_run(self) -> None:
        lines = (one_line(line) for line in "".join(self._run).split("\v"))
        text = "\n".join(filter(None, lines))
        self._run = []
        if not text:
            return
        if self._lists:
            self._builder.item(text, depth=len(self._lists) - 1, marker=self._marker)
            self._marker = ""
        else:
            self._builder.paragraph(text)

    def _heading(self, element: HtmlElement) -> None:
        text = _visible(element)
        self._close_run()
        self._note_links(element)
        box = element.getparent()
        is_in_box = box is not None and not _BOXES.isdisjoint(box.get("class", "").lower().split())
        if self._lists or is_in_box:
            self._run.append(text)
            self._close_run()
        else:
            self._builder.heading(text, int(element.tag[1]))

    def _list(self, element: HtmlElement) -> None:
        self._close_run()
        start = element.get("start", "1")
        self._lists.append((int(start) if start.isdecimal() else 1) if element.tag == "ol" else None)
        self._children(element)
        self._close_run()
        self._lists.pop()

    def _item(self, element: HtmlElement) -> None:
        self._close_run()
        number = self._lists[-1] if self._lists else None
        self._marker = "-" if number is None else f"{number}."
        if number is not None:
            self._lists[-1] = number + 1
        self._block(element)

    def _code(self, element: HtmlElement) -> None:
        self._close_run()
        for line_break in element.iter("br"):
            line_break.tail = "\n" + (line_break.tail or "")
        self._builder.code("".join(element.itertext()))

    def _table(self, element: HtmlElement) -> None:
        if not _is_data_table(element):
            self._block(element)
            return
        self._close_run()
        self._note_links(element)
        # A text is repeated for a row span, and followed by empty ones for a column span.
        open_spans: dict[int, tuple[int, str]] = {}
        rows = [list(_cells(row, open_spans)) for row in element.iter("tr")]
        first = element.find(".//tr")
        has_header = first is not None and (
            first.getparent().tag == "thead" or all(cell.tag == "th" for cell in first.iterchildren("th", "td"))
        )
        for caption in element.iter("caption"):
            self._builder.paragraph(_visible(caption))
        self._builder.table(rows, has_header=has_header)

    def _link(self, element: HtmlElement) -> None:
        self._builder.link(_visible(element), element.get("href", ""))
        self._children(element)

    def _note_links(self, element: HtmlElement) -> None:
        for link in element.iter("a"):
            self._builder.link(_visible(link), link.get("href", ""))

    def _superscript(self, element: HtmlElement) -> None:
        if "reference" not in element.get("class", "").split():
            self._children(element)


def _visible(element: HtmlElement) -> str:
    return one_line("".join(element.itertext()))
