"""One sheet of an Excel workbook, cell by cell."""

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final

from retrieval.ingest.parse.grid import DATE, NUMBER, TEXT, Merge, Sheet, SheetBuilder, column_number, kind_of
from retrieval.ingest.parse.number_dates import Clock
from retrieval.ingest.parse.xlsx_parts import PLAIN, SharedStrings, Style

_MAX_ROWS: Final = 1_048_576
_MAX_COLUMNS: Final = 16_384
_MAX_MERGES: Final = 100_000
_EXACT_DIGITS: Final = 15

_column = lru_cache(maxsize=_MAX_COLUMNS)(column_number)


class SheetReader:
    """Takes in the events of a sheet part."""

    def __init__(self, builder: SheetBuilder, strings: SharedStrings, styles: Sequence[Style], clock: Clock) -> None:
        self._builder = builder
        self._strings, self._styles, self._clock = strings, styles, clock
        self._row = 0
        self._at = -1
        self._cell: Mapping[str, str] = {}
        self._parts: list[str] = []
        self._is_value = self._has_formula = False
        self._merges: list[Merge] = []
        #: Formulas whose result the file does not hold, because no spreadsheet program has opened it.
        self.uncalculated = 0

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        """Begin a row, a cell or its value."""
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
        """Take in a value."""
        if self._is_value:
            self._parts.append(text)

    def end(self, name: str) -> None:
        """End a value or a cell."""
        self._is_value = False
        if name == "c":
            self._finish_cell()

    def sheet(self) -> Sheet:
        """Return the sheet that was read."""
        return self._builder.built(self._merges)

    def _finish_cell(self) -> None:
        written = "".join(self._parts)
        if not written:
            self.uncalculated += self._has_formula
        elif self._row <= _MAX_ROWS and 0 <= self._at < _MAX_COLUMNS:
            style = self._style()
            text, kind = self._shown(written, style)
            self._builder.add(self._row, self._at, text, kind, is_bold=style.is_bold)

    def _style(self) -> Style:
        written = self._cell.get("s", "")
        number = int(written) if written.isdecimal() and len(written) <= len("99999") else -1
        return self._styles[number] if 0 <= number < len(self._styles) else PLAIN

    def _shown(self, written: str, style: Style) -> tuple[str, str]:
        """Return the text that people see in a cell, and what kind of value it is."""
        kind = self._cell.get("t", "n")
        if kind == "s":
            number = int(written)
            known = 0 <= number < len(self._strings.texts)
            return (self._strings.texts[number], self._strings.kinds[number]) if known else ("", TEXT)
        if kind in ("str", "inlineStr"):
            return written, kind_of(written)
        if kind == "b":
            return ("TRUE" if written.strip() == "1" else "FALSE"), TEXT
        if kind == "d":
            return written.removesuffix("T00:00:00"), DATE
        if kind == "e":
            return written, NUMBER
        return self._figure(written, style)

    def _figure(self, written: str, style: Style) -> tuple[str, str]:
        if style.format.is_plain and len(written) <= _EXACT_DIGITS and written.isdecimal():
            return written, NUMBER
        value = float(written)
        if not math.isfinite(value):
            return "", NUMBER
        return style.format.shown(value, self._clock), DATE if style.format.is_date else NUMBER


def _merges(reference: str) -> list[Merge]:
    """Return the range of a reference such as A1:C3, nothing for what is none."""
    first, _, last = reference.partition(":")
    rows = [part.lstrip("ABCDEFGHIJKLMNOPQRSTUVWXYZ") for part in (first, last)]
    if not all(row.isdecimal() and len(row) <= len("1048576") for row in rows):
        return []
    return [Merge(int(rows[0]), column_number(first), int(rows[1]), column_number(last))]
