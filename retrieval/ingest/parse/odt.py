"""OpenDocument texts (odt): headings by outline level, paragraphs, lists and tables in document order."""

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from lxml.etree import _Element

from retrieval.ingest.parse.builder import BlockBuilder
from retrieval.ingest.parse.finish import finished
from retrieval.ingest.parse.open_document import opened, qualified, rows_of, text_of
from retrieval.ingest.parse.xml_reading import name_of
from retrieval.text.document import Block, ParsedDocument, RawDocument

_STYLE_NAME: Final = qualified("text", "style-name")
_HEADING: Final = qualified("text", "h")
_PARAGRAPH: Final = qualified("text", "p")
_TITLE_STYLE: Final = "Title"
_CODE_STYLE: Final = "Preformatted_20_Text"
_MAX_LEVELS: Final = 6
#: Repeated text, and elements that are not text of the document.
_SKIPPED: Final = frozenset(
    {
        *("tracked-changes", "table-of-content", "illustration-index", "table-index", "object-index", "user-index"),
        *("alphabetical-index", "sequence-decls", "variable-decls", "user-field-decls", "forms", "annotation", "note"),
    }
)
_LEVELS: Final = frozenset(map(str, range(1, 11)))


def parse_odt(raw: RawDocument) -> ParsedDocument:
    """Return a text as `parse_docx` does. Raises IngestError: `too_large`, `corrupt`, `encrypted`, `empty`."""
    document = opened(raw.content, "text")
    title = document.facts.pop("title", "")
    reader = BodyReader(
        title_styles=_styles_of(document.root, _TITLE_STYLE),
        code_styles=_styles_of(document.root, _CODE_STYLE),
        numbered=frozenset(_numbered(document.root)),
    )
    reader.read(document.body)
    return finished(raw, source_type="docx", blocks=reader.blocks(), metadata=document.facts, property_title=title)


def _styles_of(root: _Element, parent_name: str) -> frozenset[str]:
    parent, name = qualified("style", "parent-style-name"), qualified("style", "name")
    styles = (style for style in root.iter(qualified("style", "style")) if style.get(parent) == parent_name)
    return frozenset({parent_name, *(style.get(name, "") for style in styles)})


def _numbered(root: _Element) -> Iterator[tuple[str, str]]:
    """Yield the list styles, each with a level, from "1", on which items have numbers."""
    for level in root.iter(qualified("text", "list-level-style-number")):
        if level.get(qualified("style", "num-format")):
            yield level.getparent().get(qualified("style", "name"), ""), level.get(qualified("text", "level"), "")


class BodyReader:
    """Reads a body, including unknown elements."""

    def __init__(
        self,
        *,
        title_styles: frozenset[str] = frozenset(),
        code_styles: frozenset[str] = frozenset(),
        numbered: frozenset[tuple[str, str]] = frozenset(),
    ) -> None:
        self._builder = BlockBuilder()
        self._title_styles = title_styles
        self._code_styles = code_styles
        self._numbered = numbered
        self._counts: dict[tuple[str, int], int] = {}
        self._code: list[str] = []
        self._handlers: Mapping[str, Callable[[_Element], None]] = {
            "h": self._heading,
            "p": self._paragraph,
            "list": self._list,
            "table": self._table,
            **dict.fromkeys(_SKIPPED, lambda _: None),
        }

    def read(self, parent: _Element) -> None:
        """Add the content of an element."""
        for element in parent:
            if element.tag == _PARAGRAPH and element.get(_STYLE_NAME) in self._code_styles:
                self._code.append(text_of(element))
            elif name := name_of(element):
                self._end_code()
                self._handlers.get(name, self.read)(element)

    def blocks(self) -> list[Block]:
        """Return all blocks so far."""
        self._end_code()
        return self._builder.blocks()

    def _end_code(self) -> None:
        self._builder.code("\n".join(self._code))
        self._code.clear()

    def _heading(self, heading: _Element) -> None:
        level = heading.get(qualified("text", "outline-level"), "1")
        self._builder.heading(text_of(heading), min(int(level), _MAX_LEVELS) if level in _LEVELS else _MAX_LEVELS)
        self._attached(heading)

    def _paragraph(self, paragraph: _Element) -> None:
        if paragraph.get(_STYLE_NAME, "") in self._title_styles:
            self._builder.heading(text_of(paragraph), 1)
        else:
            self._builder.paragraph(text_of(paragraph))
        self._attached(paragraph)

    def _attached(self, paragraph: _Element) -> None:
        for element in _outermost(paragraph):
            if name_of(element) == "text-box":
                self.read(element)
            else:
                bodies = element.iterchildren(qualified("text", "note-body"))
                texts = (text_of(part) for body in bodies for part in body.iter(_PARAGRAPH))
                self._builder.paragraph(" ".join(texts))

    def _list(self, items: _Element, depth: int = 0, style: str = "") -> None:
        style = items.get(_STYLE_NAME, style)
        goes_on = items.get(qualified("text", "continue-numbering")) == "true"
        number = self._counts.get((style, depth), 0) if goes_on else 0
        for item in items:
            number += name_of(item) == "list-item"
            marker = f"{number}." if (style, str(depth + 1)) in self._numbered else "-"
            self._counts[style, depth] = number
            for part in item:
                if name_of(part) == "list":
                    self._list(part, depth + 1, style)
                elif part.tag == _HEADING:
                    self._heading(part)
                elif name_of(part) == "p":
                    self._builder.item(text_of(part), depth=depth, marker=marker)
                    self._attached(part)
                    marker = ""

    def _table(self, table: _Element) -> None:
        rows = rows_of(table)
        if sum(map(len, rows)) <= 1 or next(table.iter(_HEADING), None) is not None:
            # A frame around text, not a table.
            self.read(table)
            return
        self._builder.table(rows, has_header=True)


def _outermost(element: _Element) -> Iterator[_Element]:
    for child in element:
        if name_of(child) in {"text-box", "note"}:
            yield child
        else:
            yield from _outermost(child)
