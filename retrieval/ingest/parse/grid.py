"""A sheet as rows of filled cells, independent of the file format."""

import re
from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from retrieval.errors import IngestError

TEXT: Final = "text"
NUMBER: Final = "number"
DATE: Final = "date"

MAX_CELLS: Final = 2_000_000  #: Maximum cells with a value in one file; merged ones count once per row.
_MAX_MERGES: Final = 50_000
_MAX_COLUMN_LETTERS: Final = 4  #: The last column of the largest sheets is XFD.
_FIGURE: Final = re.compile(
    r"[-+(]{0,2}\s?[$€£¥]?\s?-?\d[\d.,' ]*(?:e[-+]?\d+)?\s?(?:%|‰|[kmb]n?|[$€£¥])?\)?", re.IGNORECASE
)
_DATE: Final = re.compile(
    r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}(?:[T ]\d{1,2}:\d{2}.*)?"
    r"|\d{1,2}[-/.]\d{1,2}[-/.](?:\d{2}|\d{4})|\d{1,2}:\d{2}(?::\d{2})?"
)
_MAX_FIGURE_LENGTH: Final = 32


@dataclass(slots=True)
class Row:
    """The filled cells of one row, from left to right."""

    number: int  #: 1-based, as shown in programs.
    columns: list[int] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    kinds: list[str] = field(default_factory=list)
    is_bold: bool = False  #: Whether every filled cell is bold; False if the format has no such information.

    def text_at(self, column: int) -> str:
        """Return the text of a cell, or an empty string."""
        place = self._place(column)
        return "" if place is None else self.texts[place]

    def kind_at(self, column: int) -> str:
        """Return the kind of a cell, or an empty string."""
        place = self._place(column)
        return "" if place is None else self.kinds[place]

    def insert(self, column: int, text: str, kind: str) -> None:
        """Fill an empty cell."""
        place = bisect_left(self.columns, column)
        if place == len(self.columns) or self.columns[place] != column:
            self.columns.insert(place, column)
            self.texts.insert(place, text)
            self.kinds.insert(place, kind)

    def between(self, first: int, last: int) -> "Row":
        """Return the row with the cells of the columns `first` to `last` only."""
        cut = slice(bisect_left(self.columns, first), bisect_left(self.columns, last + 1))
        return Row(self.number, self.columns[cut], self.texts[cut], self.kinds[cut], self.is_bold)

    def _place(self, column: int) -> int | None:
        place = bisect_left(self.columns, column)
        return place if place < len(self.columns) and self.columns[place] == column else None


@dataclass(frozen=True, slots=True)
class Merge:
    """A range of cells shown as one; rows from 1, columns from 0, all inclusive."""

    top: int
    left: int
    bottom: int
    right: int


@dataclass(slots=True)
class Sheet:
    """One sheet; rows without any filled cell are left out."""

    name: str
    rows: list[Row] = field(default_factory=list)
    #: Cells merged across columns: the last column by row and first column.
    across: dict[tuple[int, int], int] = field(default_factory=dict)
    is_hidden: bool = False


@dataclass(slots=True)
class CellBudget:
    """The number of cells that a file may still have."""

    left: int = MAX_CELLS

    def take(self, cells: int = 1) -> None:
        """Count cells; raise IngestError `too_large` for too many."""
        self.left -= cells
        if self.left < 0:
            raise IngestError("too_large", f"The file has more than {MAX_CELLS:,} cells.")


class SheetBuilder:
    """Builds one sheet from its cells in the order of the file."""

    def __init__(self, name: str, budget: CellBudget, *, is_hidden: bool = False) -> None:
        self._sheet = Sheet(name, is_hidden=is_hidden)
        self._budget = budget
        self._row = Row(0)

    def add(self, row: int, column: int, text: str, kind: str, *, is_bold: bool = False) -> None:
        """Add a cell of row `row` (from 1) and column `column` (from 0); blank ones are ignored."""
        if not text or text.isspace():
            return
        self._budget.take()
        current = self._row
        if row != current.number:
            current = self._row = Row(row, is_bold=True)
            self._sheet.rows.append(current)
        current.is_bold = current.is_bold and is_bold
        if current.columns and column <= current.columns[-1]:
            current.insert(column, text, kind)
            return
        current.columns.append(column)
        current.texts.append(text)
        current.kinds.append(kind)

    def built(self, merges: Iterable[Merge] = ()) -> Sheet:
        """Return the sheet; a cell merged over rows is repeated in each of them with other cells."""
        sheet = self._sheet
        if any(before.number >= after.number for before, after in zip(sheet.rows, sheet.rows[1:], strict=False)):
            by_number: dict[int, Row] = {}
            for filled in sheet.rows:
                known = by_number.setdefault(filled.number, filled)
                if known is not filled:
                    for cell in zip(filled.columns, filled.texts, filled.kinds, strict=True):
                        known.insert(*cell)
            sheet.rows = [by_number[number] for number in sorted(by_number)]
        numbers = [row.number for row in sheet.rows]
        for count, merge in enumerate(merges):
            if count == _MAX_MERGES:
                break
            self._merge(merge, numbers)
        return sheet

    def _merge(self, merge: Merge, numbers: list[int]) -> None:
        rows = self._sheet.rows
        first = bisect_left(numbers, merge.top)
        if first == len(rows) or numbers[first] != merge.top:
            return
        if merge.right > merge.left:
            self._sheet.across[merge.top, merge.left] = merge.right
        text, kind = rows[first].text_at(merge.left), rows[first].kind_at(merge.left)
        last = bisect_left(numbers, merge.bottom + 1)
        if text and last > first + 1:
            self._budget.take(last - first - 1)
            for row in rows[first + 1 : last]:
                row.insert(merge.left, text, kind)


def kind_of(text: str) -> str:
    """Return the kind of a cell by its text: a figure may have a currency, a percent sign or brackets."""
    if len(text) > _MAX_FIGURE_LENGTH:
        return TEXT
    written = text.strip()
    if _DATE.fullmatch(written):
        return DATE
    return NUMBER if _FIGURE.fullmatch(written) else TEXT


def column_number(reference: str) -> int:
    """Return the column, from 0, of a reference such as AB12."""
    number = 0
    for letter in reference[:_MAX_COLUMN_LETTERS]:
        if not letter.isalpha():
            break
        number = number * 26 + ord(letter.upper()) - ord("A") + 1
    return number - 1
