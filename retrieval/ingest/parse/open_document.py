"""Common parts of OpenDocument files: their structure, and the XML of text and tables."""

import re
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from io import BytesIO
from typing import Final

from lxml.etree import _Element

from retrieval.errors import IngestError
from retrieval.ingest.parse.containers import checked_names
from retrieval.ingest.parse.xml_reading import facts_in, name_of, tree_of

CONTENT: Final = "content.xml"
_META: Final = "meta.xml"
_MANIFEST: Final = "META-INF/manifest.xml"
_NAMESPACE: Final = "urn:oasis:names:tc:opendocument:xmlns:{}:1.0"
_SIGNS: Final = {"tab": "\t", "line-break": "\n"}
_CELLS: Final = frozenset({"table-cell", "covered-table-cell"})
_SPACE: Final = re.compile(r"[ \t\r\n]+")
_MAX_SPACES: Final = 200
_MAX_COLUMNS: Final = 256
_MAX_REPEATED_ROWS: Final = 1000


@dataclass(frozen=True, slots=True)
class OpenDocument:
    """The body of a text or a presentation, its styles, and its metadata."""

    body: _Element
    root: _Element
    facts: dict[str, str]


def qualified(prefix: str, name: str) -> str:
    """Return a name with its namespace, in lxml's notation: ("text", "style-name")."""
    return f"{{{_NAMESPACE.format(prefix)}}}{name}"


def refuse_encrypted(archive: zipfile.ZipFile, names: frozenset[str]) -> None:
    """Raise IngestError `encrypted` for a file with a password."""
    if _MANIFEST in names and b"encryption-data" in archive.read(_MANIFEST):
        raise IngestError("encrypted", "The file is protected by a password.")


def facts_of(archive: zipfile.ZipFile, names: frozenset[str]) -> dict[str, str]:
    """Return the metadata of a file: title, author, dates."""
    if _META not in names:
        return {}
    with archive.open(_META) as stream:
        return facts_in(stream)


def opened(content: bytes, kind: str) -> OpenDocument:
    """Return the parts of a "text" or "presentation"; raise IngestError: `too_large`, `corrupt`, `encrypted`."""
    names = checked_names(content)
    wrong_type = IngestError("corrupt", f"The file is not an OpenDocument {kind}.")
    if CONTENT not in names:
        raise wrong_type
    with zipfile.ZipFile(BytesIO(content)) as archive:
        refuse_encrypted(archive, names)
        root = tree_of(archive.read(CONTENT))
        facts = facts_of(archive, names)
    body = root.find(f"{qualified('office', 'body')}/{qualified('office', kind)}")
    if body is None:
        raise wrong_type
    return OpenDocument(body, root, facts)


def text_of(element: _Element) -> str:
    """Return the visible text of a paragraph."""
    return "".join(_texts(element))


def rows_of(table: _Element) -> list[list[str]]:
    """Return the texts of a table's cells in rows of equal length; a cell that spans rows is repeated in each."""
    rows: list[list[str]] = []
    spans: dict[int, tuple[int, str]] = {}
    for row in table.iter(qualified("table", "table-row")):
        if next(row.iterancestors(table.tag)) is table:
            cells = list(_cells(row, spans))
            rows.extend([cells] * (_count(row, "number-rows-repeated", _MAX_REPEATED_ROWS) if any(cells) else 1))
    width = max((place + 1 for cells in rows for place, text in enumerate(cells) if text), default=0)
    return [[*cells, *[""] * (width - len(cells))][:width] for cells in rows]


def _texts(element: _Element) -> Iterator[str]:
    yield _SPACE.sub(" ", element.text or "")
    for child in element:
        name = name_of(child)
        if name == "s":
            yield " " * min(int(_decimal(child.get(qualified("text", "c"), "1"))), _MAX_SPACES)
        elif name in _SIGNS:
            yield _SIGNS[name]
        elif name and child.tag not in _ASIDE:
            yield from _texts(child)
        yield _SPACE.sub(" ", child.tail or "")


def _cells(row: _Element, spans: dict[int, tuple[int, str]]) -> Iterator[str]:
    """Yield the texts of a row; `spans` has, by column, the remaining rows and the text of a cell above."""
    column = 0
    for cell in row:
        if name_of(cell) not in _CELLS:
            continue
        repeated = min(_count(cell, "number-columns-repeated", _MAX_COLUMNS), _MAX_COLUMNS - column)
        paragraphs = cell.iter(qualified("text", "p"), qualified("text", "h"))
        text = " ".join(filter(None, (text_of(it).strip() for it in paragraphs)))
        for place in range(column, column + repeated):
            yield _spanned(cell, text, place, spans)
        column += repeated


def _spanned(cell: _Element, text: str, column: int, spans: dict[int, tuple[int, str]]) -> str:
    if name_of(cell) == "table-cell":
        spans[column] = (_count(cell, "number-rows-spanned", _MAX_REPEATED_ROWS) - 1, text)
        return text
    left, above = spans.get(column, (0, ""))
    spans[column] = (left - 1, above)
    return above if left > 0 else ""


def _count(element: _Element, name: str, limit: int) -> int:
    return min(max(int(_decimal(element.get(qualified("table", name), "1"))), 1), limit)


def _decimal(written: str) -> str:
    """Return a number as written, "1" for other text and for more digits than any count."""
    return written if written.isascii() and written.isdecimal() and len(written) <= len("1048576") else "1"


#: Elements with hidden text, or with text that is read separately.
_ASIDE: Final = frozenset(
    {
        *(qualified("office", "annotation"), qualified("text", "note"), qualified("text", "ruby-text")),
        *(qualified("draw", "text-box"), qualified("svg-compatible", "title"), qualified("svg-compatible", "desc")),
    }
)
