"""OpenDocument spreadsheets (ods), read as a stream of events, with the shown texts of cells."""

import zipfile
from collections.abc import Mapping
from io import BytesIO
from typing import Final

from retrieval.errors import IngestError
from retrieval.ingest.parse.containers import checked_names
from retrieval.ingest.parse.grid import DATE, NUMBER, TEXT, CellBudget, Merge, Sheet, SheetBuilder, kind_of
from retrieval.ingest.parse.open_document import CONTENT, facts_of, refuse_encrypted
from retrieval.ingest.parse.sheets import workbook_document
from retrieval.ingest.parse.xml_reading import EventReader, read_events
from retrieval.text.document import ParsedDocument, RawDocument

_CELLS: Final = frozenset({"table-cell", "covered-table-cell"})
_ASIDE: Final = frozenset({"annotation", "shapes", "tracked-changes"})
_MAX_REPEATED: Final = 1_048_576


def parse_ods(raw: RawDocument) -> ParsedDocument:
    """Return the sheets as `parse_xlsx` does. Raises IngestError: `too_large`, `corrupt`, `encrypted`, `empty`."""
    names = checked_names(raw.content)
    if CONTENT not in names:
        raise IngestError("corrupt", "The file is not an OpenDocument spreadsheet.")
    reader = _Reader()
    with zipfile.ZipFile(BytesIO(raw.content)) as archive:
        refuse_encrypted(archive, names)
        with archive.open(CONTENT) as stream:
            read_events(stream, reader)
        facts = facts_of(archive, names)
    return workbook_document(raw, reader.sheets, facts)


class _Reader(EventReader):
    def __init__(self) -> None:
        self.sheets: list[Sheet] = []
        self._budget = CellBudget()
        self._builder: SheetBuilder | None = None
        self._merges: list[Merge] = []
        self._style = ""
        self._hidden_styles: set[str] = set()
        self._row = self._next_row = self._column = 0
        self._row_cells: list[tuple[int, int, str, str]] = []
        self._cell: Mapping[str, str] | None = None
        self._lines: list[str] = []
        self._aside = 0

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        self._aside += name in _ASIDE
        if name == "style":
            self._style = attributes.get("style:name", "")
        elif name == "table-properties" and attributes.get("table:display") == "false":
            self._hidden_styles.add(self._style)
        elif name == "table":
            is_hidden = attributes.get("table:style-name", "") in self._hidden_styles
            self._builder = SheetBuilder(attributes.get("table:name", ""), self._budget, is_hidden=is_hidden)
            self._merges, self._next_row = [], 1
        elif name == "table-row":
            self._row, self._column, self._row_cells = self._next_row, 0, []
            self._next_row += _count(attributes, "table:number-rows-repeated")
        elif name in _CELLS:
            self._cell, self._lines = attributes, []
        elif name in ("p", "h"):
            self._lines.append("")
        elif name == "s" and self._lines:
            self._lines[-1] += " "

    def text(self, text: str) -> None:
        if self._cell is not None and self._lines and not self._aside:
            self._lines[-1] += text

    def end(self, name: str) -> None:
        self._aside -= name in _ASIDE
        if name in _CELLS and self._cell is not None:
            repeated = _count(self._cell, "table:number-columns-repeated")
            text, kind = _shown(self._cell, "\n".join(filter(None, self._lines)))
            if text:
                self._row_cells.append((self._column, repeated, text, kind))
            down, right = (_count(self._cell, f"table:number-{name}-spanned") for name in ("rows", "columns"))
            if down > 1 or right > 1:
                merge = Merge(self._row, self._column, self._row + down - 1, self._column + right - 1)
                self._merges.append(merge)
            self._column += repeated
            self._cell = None
        elif name == "table-row":
            self._finish_row()
        elif name == "table" and self._builder is not None:
            self.sheets.append(self._builder.built(self._merges))
            self._builder = None

    def _finish_row(self) -> None:
        if not self._row_cells or self._builder is None:
            return
        for row in range(self._row, self._next_row):
            for first, repeated, text, kind in self._row_cells:
                for column in range(first, first + repeated):
                    self._builder.add(row, column, text, kind)


def _shown(cell: Mapping[str, str], text: str) -> tuple[str, str]:
    """Return a cell's text and kind; a date without the name of a month in ISO format, as in other formats."""
    kind = cell.get("office:value-type", "string")
    if kind == "date" and not any(map(str.isalpha, text)):
        return cell.get("office:date-value", text).replace("T", " "), DATE
    if kind in {"date", "time"}:
        return text, DATE
    if kind in {"float", "percentage", "currency"}:
        return text or cell.get("office:value", ""), NUMBER
    return text, kind_of(text) if text else TEXT


def _count(attributes: Mapping[str, str], name: str) -> int:
    written = attributes.get(name, "1")
    is_number = written.isascii() and written.isdecimal() and len(written) <= len(str(_MAX_REPEATED))
    return min(max(int(written), 1), _MAX_REPEATED) if is_number else 1
