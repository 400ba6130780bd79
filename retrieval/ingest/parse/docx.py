"""Word documents (docx): headings by style, paragraphs, lists and tables in document order."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from io import BytesIO
from itertools import pairwise
from typing import Final

import docx
from docx.document import Document
from docx.opc.constants import RELATIONSHIP_TYPE
from docx.oxml.ns import qn
from docx.oxml.parser import parse_xml
from lxml.etree import _Element

from retrieval.errors import IngestError
from retrieval.ingest.parse.builder import BlockBuilder
from retrieval.ingest.parse.containers import checked_names
from retrieval.ingest.parse.docx_numbering import BULLET, Numbering
from retrieval.ingest.parse.finish import finished
from retrieval.text.document import Block, ParsedDocument, RawDocument

_HEADING: Final = re.compile(r"heading\s*([1-9])")
_MAX_HEADING_LEVEL: Final = 6
_MAX_ANCESTORS: Final = 20  #: Styles are based on other styles; a longer chain is a cycle.
_FALLBACK: Final = "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback"
#: Deleted text, field codes, properties, and text boxes, which are read separately.
_NOT_TEXT: Final = frozenset(
    map(qn, ("w:del", "w:moveFrom", "w:instrText", "w:delText", "w:pPr", "w:rPr", "w:txbxContent"))
) | {_FALLBACK}
_WRITTEN: Final = frozenset(map(qn, ("w:t", "m:t")))
_SIGNS: Final = {qn("w:tab"): "\t", qn("w:br"): "\n", qn("w:cr"): "\n", qn("w:noBreakHyphen"): "-"}
_NOTE_TYPES: Final = (("w:footnote", RELATIONSHIP_TYPE.FOOTNOTES), ("w:endnote", RELATIONSHIP_TYPE.ENDNOTES))


@dataclass(frozen=True, slots=True)
class _Style:
    name: str
    parent: str
    outline_level: int  #: Depth in the outline from 1, 0 for body text.
    is_list: bool
    list_id: str  #: The list that paragraphs of the style are items of; empty for none.


class _Styles:
    def __init__(self, definitions: _Element) -> None:
        self._styles = {
            element.get(qn("w:styleId"), ""): _style(element) for element in definitions.iter(qn("w:style"))
        }

    def heading_level(self, style_id: str) -> int:
        """Return 1 to 6 for a heading style, 0 for any other."""
        for style in self._chain(style_id):
            named = _HEADING.match(style.name)
            level = 1 if style.name == "title" else int(named[1]) if named else style.outline_level
            if level:
                return min(level, _MAX_HEADING_LEVEL)
        return 0

    def is_list(self, style_id: str) -> bool:
        return any(style.is_list for style in self._chain(style_id))

    def list_id(self, style_id: str) -> str:
        """Return the list that paragraphs of a style are items of, empty for none."""
        return next((style.list_id for style in self._chain(style_id) if style.list_id), "")

    def is_contents(self, style_id: str) -> bool:
        """Return whether the style is for entries of the table of contents, which repeat the headings."""
        return any(style.name.startswith("toc ") for style in self._chain(style_id))

    def _chain(self, style_id: str) -> Iterator[_Style]:
        for _ in range(_MAX_ANCESTORS):
            style = self._styles.get(style_id)
            if style is None:
                return
            yield style
            style_id = style.parent


def outline_level(properties: _Element | None) -> int:
    """Return the outline level from 1 in paragraph properties, 0 if they have none."""
    written = _attribute(properties, "w:outlineLvl")
    level = int(written) + 1 if written.isdecimal() else 0
    return level if level <= _MAX_HEADING_LEVEL else 0


def _style(element: _Element) -> _Style:
    properties = element.find(qn("w:pPr"))
    name = _attribute(element, "w:name").lower()
    numbering = None if properties is None else properties.find(qn("w:numPr"))
    return _Style(
        name=name,
        parent=_attribute(element, "w:basedOn"),
        outline_level=outline_level(properties),
        is_list=numbering is not None or name.startswith("list"),
        list_id=_attribute(numbering, "w:numId"),
    )


def parse_docx(raw: RawDocument) -> ParsedDocument:
    """Return a Word file with its notes, without deletions, comments, page headers and the table of contents."""
    if "word/document.xml" not in checked_names(raw.content):
        raise IngestError("corrupt", "The file is not a Word document.")
    document = docx.Document(BytesIO(raw.content))
    properties = document.core_properties
    return finished(
        raw,
        source_type="docx",
        blocks=_Reader(document).read(document.element.body),
        metadata={
            "author": properties.author or "",
            "subject": properties.subject or "",
            "keywords": properties.keywords or "",
            "language": properties.language or "",
            "created": properties.created.date().isoformat() if properties.created else "",
            "modified": properties.modified.date().isoformat() if properties.modified else "",
        },
        property_title=properties.title or "",
    )


class _Reader:
    def __init__(self, document: Document) -> None:
        self._builder = BlockBuilder()
        self._styles = _Styles(document.styles.element)
        self._numbering = Numbering(document)
        self._notes = _notes(document)
        self._targets = _targets(document)
        self._handlers: Mapping[str, Callable[[_Element], None]] = {
            qn("w:p"): self._paragraph,
            qn("w:tbl"): self._table,
            **dict.fromkeys((qn("w:sectPr"), qn("w:del"), qn("w:sdtPr"), _FALLBACK), lambda _: None),
        }

    def read(self, body: _Element) -> list[Block]:
        self._children(body)
        return self._builder.blocks()

    def _children(self, parent: _Element) -> None:
        for element in parent:
            self._handlers.get(element.tag, self._children)(element)

    def _paragraph(self, paragraph: _Element) -> None:
        properties = paragraph.find(qn("w:pPr"))
        style = _attribute(properties, "w:pStyle")
        if not self._styles.is_contents(style):
            for link in paragraph.iter(qn("w:hyperlink")):
                self._builder.link("".join(_texts(link)), self._targets.get(link.get(qn("r:id"), ""), ""))
            self._write("".join(_texts(paragraph)), properties, style)
        for box in paragraph.iter(qn("w:txbxContent")):
            if not any(ancestor.tag == _FALLBACK for ancestor in box.iterancestors()):
                self._children(box)
        for note in paragraph.iter(qn("w:footnoteReference"), qn("w:endnoteReference")):
            kind = note.tag.removesuffix("Reference")
            self._builder.paragraph(self._notes.get((kind, note.get(qn("w:id"), "")), ""))

    def _write(self, text: str, properties: _Element | None, style: str) -> None:
        level = outline_level(properties) or self._styles.heading_level(style)
        numbering = None if properties is None else properties.find(qn("w:numPr"))
        if level:
            self._builder.heading(text, level)
        elif numbering is not None or self._styles.is_list(style):
            written = _attribute(numbering, "w:ilvl")
            depth = int(written) if written.isdecimal() else 0
            list_id = _attribute(numbering, "w:numId") or self._styles.list_id(style)
            marker = self._numbering.marker(list_id, depth) if text.strip() else BULLET
            self._builder.item(text, depth=depth, marker=marker)
        else:
            self._builder.paragraph(text)

    def _table(self, table: _Element) -> None:
        rows = [list(_cells(row)) for row in table.iterchildren(qn("w:tr"))]
        styles = (_attribute(properties, "w:pStyle") for properties in table.iter(qn("w:pPr")))
        if sum(map(len, rows)) <= 1 or any(map(self._styles.heading_level, styles)):
            self._children(table)
            return
        for above, row in pairwise(rows):
            row[:] = [
                above[column] if cell is None and column < len(above) else cell for column, cell in enumerate(row)
            ]
        self._builder.table([[cell or "" for cell in row] for row in rows], has_header=True)


def _texts(element: _Element) -> Iterator[str]:
    for child in element:
        if child.tag in _WRITTEN:
            yield child.text or ""
        elif child.tag in _SIGNS:
            yield _SIGNS[child.tag]
        elif child.tag not in _NOT_TEXT:
            yield from _texts(child)


def _cells(row: _Element) -> Iterator[str | None]:
    """Yield the texts of a row's cells, None for one that continues the cell above it."""
    for cell in row.iter(qn("w:tc")):
        if next(cell.iterancestors(qn("w:tr"))) is not row:
            continue
        properties = cell.find(qn("w:tcPr"))
        merge = None if properties is None else properties.find(qn("w:vMerge"))
        is_continued = merge is not None and merge.get(qn("w:val")) != "restart"
        yield None if is_continued else " ".join("".join(_texts(paragraph)) for paragraph in cell.iter(qn("w:p")))
        span = _attribute(properties, "w:gridSpan")
        yield from [""] * (min(int(span), 50) - 1 if span.isdecimal() else 0)


def _notes(document: Document) -> dict[tuple[str, str], str]:
    notes = {}
    for tag, relationship in _NOTE_TYPES:
        for related in document.part.rels.values():
            if related.reltype == relationship and not related.is_external:
                for note in parse_xml(related.target_part.blob).iter(qn(tag)):
                    notes[qn(tag), note.get(qn("w:id"), "")] = "".join(_texts(note)).strip()
    return notes


def _targets(document: Document) -> dict[str, str]:
    links = (rel for rel in document.part.rels.values() if rel.reltype == RELATIONSHIP_TYPE.HYPERLINK)
    return {rel.rId: rel.target_ref for rel in links if rel.is_external}


def _attribute(properties: _Element | None, tag: str) -> str:
    child = None if properties is None else properties.find(qn(tag))
    return "" if child is None else str(child.get(qn("w:val"), ""))
