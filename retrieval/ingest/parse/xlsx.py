"""Excel workbooks (xlsx, xlsm): values as shown to people, read as a stream of events.

No library fits: python-calamine reads no number formats and reserves memory for the rectangle up
to the farthest cell; openpyxl, as a stream, knows no merged cells, fills rows up to the farthest
column, and takes twice as long.
"""

import math
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from io import BytesIO
from typing import Final

from retrieval.errors import IngestError
from retrieval.ingest.parse import grid
from retrieval.ingest.parse.containers import checked_names
from retrieval.ingest.parse.number_format import Clock
from retrieval.ingest.parse.sheets import workbook_document
from retrieval.ingest.parse.xlsx_parts import PLAIN, Relations, SharedStrings, Style, Styles, Workbook
from retrieval.ingest.parse.xml_reading import EventReader, facts_in, read_events
from retrieval.text.document import ParsedDocument, RawDocument

_MAX_ROWS: Final = 1_048_576
_MAX_COLUMNS: Final = 16_384
_MAX_MERGES: Final = 100_000
_EXACT_DIGITS: Final = 15

_column = lru_cache(maxsize=_MAX_COLUMNS)(grid.column_number)
_BLOCK_BYTES: Final = 1024 * 1024


class _SheetReader(EventReader):
    def __init__(
        self, builder: grid.SheetBuilder, strings: SharedStrings, styles: Sequence[Style], clock: Clock
    ) -> None:
        self._builder = builder
        self._strings, self._styles, self._clock = strings, styles, clock
        self._row = 0
        self._at = -1
        self._cell: Mapping[str, str] = {}
        self._parts: list[str] = []
        self._is_value = self._has_formula = False
        self._merges: list[grid.Merge] = []
        #: Formulas without a stored result, because no spreadsheet program has opened the file.
        self.uncalculated = 0

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        if name == "c":
            self._cell, self._parts, self._has_formula = attributes, [], False
            reference = attributes.get("r")
            self._at = _column(reference.rstrip("0123456789")) if reference else self._at + 1
        elif name in ("v", "t"):
            self._is_value = True
        elif name == "f":
            self._has_formula = True
        elif name == "row":
            written = attributes.get("r", "")
            self._row = int(written) if written.isdecimal() and len(written) <= len("1048576") else self._row + 1
            self._at = -1
        elif name == "mergeCell" and len(self._merges) < _MAX_MERGES:
            self._merges += _merges(attributes.get("ref", ""))

    def text(self, text: str) -> None:
        if self._is_value:
            self._parts.append(text)

    def end(self, name: str) -> None:
        self._is_value = False
        if name == "c":
            written = "".join(self._parts)
            if not written:
                self.uncalculated += self._has_formula
            elif self._row <= _MAX_ROWS and 0 <= self._at < _MAX_COLUMNS:
                style = self._style()
                text, kind = self._shown(written, style)
                self._builder.add(self._row, self._at, text, kind, is_bold=style.is_bold)

    def sheet(self) -> grid.Sheet:
        return self._builder.built(self._merges)

    def _style(self) -> Style:
        written = self._cell.get("s", "")
        number = int(written) if written.isdecimal() and len(written) <= len("99999") else -1
        return self._styles[number] if 0 <= number < len(self._styles) else PLAIN

    def _shown(self, written: str, style: Style) -> tuple[str, str]:
        kind = self._cell.get("t", "n")
        if kind == "s":
            number = int(written)
            known = 0 <= number < len(self._strings.texts)
            return (self._strings.texts[number], self._strings.kinds[number]) if known else ("", grid.TEXT)
        if kind in ("str", "inlineStr"):
            return written, grid.kind_of(written)
        if kind == "b":
            return ("TRUE" if written.strip() == "1" else "FALSE"), grid.TEXT
        if kind == "d":
            return written.removesuffix("T00:00:00"), grid.DATE
        if kind == "e":
            return written, grid.NUMBER
        return self._figure(written, style)

    def _figure(self, written: str, style: Style) -> tuple[str, str]:
        if style.format.is_plain and len(written) <= _EXACT_DIGITS and written.isdecimal():
            return written, grid.NUMBER
        value = float(written)
        if not math.isfinite(value):
            return "", grid.NUMBER
        return style.format.shown(value, self._clock), grid.DATE if style.format.is_date else grid.NUMBER


def _merges(reference: str) -> list[grid.Merge]:
    first, _, last = reference.partition(":")
    rows = [part.lstrip("ABCDEFGHIJKLMNOPQRSTUVWXYZ") for part in (first, last)]
    if not all(row.isdecimal() and len(row) <= len("1048576") for row in rows):
        return []
    return [grid.Merge(int(rows[0]), grid.column_number(first), int(rows[1]), grid.column_number(last))]


def parse_xlsx(raw: RawDocument) -> ParsedDocument:
    """Return the document of an Excel workbook: a section per sheet, formulas by their stored results.

    Hidden sheets are read too, and listed in the metadata. Raises IngestError: `too_large` beyond
    `grid.MAX_CELLS` cells, `corrupt`, `encrypted`, `empty`.
    """
    names = checked_names(raw.content)
    with zipfile.ZipFile(BytesIO(raw.content)) as archive:
        reader = _Reader(archive, names)
        sheets = list(reader.sheets())
        facts = reader.facts()
    return workbook_document(raw, sheets, facts)


class _Reader:
    def __init__(self, archive: zipfile.ZipFile, names: frozenset[str]) -> None:
        self._archive, self._names = archive, names
        self._root = self._relations("_rels/.rels", "")
        self._uncalculated = 0

    def sheets(self) -> Iterator[grid.Sheet]:
        part = self._root.by_kind.get("officeDocument", "")
        if part not in self._names:
            raise IngestError("corrupt", "The file is not an Excel workbook.")
        folder, _, file = part.rpartition("/")
        relations = self._relations(f"{folder}/_rels/{file}.rels".lstrip("/"), folder)
        workbook, strings, styles = Workbook(), SharedStrings(), Styles()
        self._read(part, workbook)
        self._read(relations.by_kind.get("sharedStrings", ""), strings)
        self._read(relations.by_kind.get("styles", ""), styles)
        known_styles = styles.styles()
        # Counting the values is much faster than reading them.
        grid.CellBudget().take(sum(map(self._values_in, relations.by_id.values())))
        budget = grid.CellBudget()
        for name, relation, is_hidden in workbook.sheets:
            builder = grid.SheetBuilder(name, budget, is_hidden=is_hidden)
            reader = _SheetReader(builder, strings, known_styles, workbook.clock)
            self._read(relations.by_id.get(relation, ""), reader)
            self._uncalculated += reader.uncalculated
            yield reader.sheet()

    def facts(self) -> dict[str, str]:
        facts: dict[str, str] = {}
        part = self._root.by_kind.get("core-properties", "")
        if part in self._names:
            with self._archive.open(part) as stream:
                facts = facts_in(stream)
        if self._uncalculated:
            facts["uncalculated_formulas"] = str(self._uncalculated)
        return facts

    def _relations(self, part: str, folder: str) -> Relations:
        relations = Relations(folder)
        self._read(part, relations)
        return relations

    def _values_in(self, part: str) -> int:
        """Return the number of values in a part, or slightly less: those across block ends are missed."""
        if part not in self._names:
            return 0
        with self._archive.open(part) as stream:
            return sum(block.count(b"<v>") for block in iter(lambda: stream.read(_BLOCK_BYTES), b""))

    def _read(self, part: str, reader: EventReader) -> None:
        if part in self._names:
            with self._archive.open(part) as stream:
                read_events(stream, reader)
