"""Tables of a PDF page: lines whose cells are below each other, under a header."""

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import fmean
from typing import Final

from retrieval.ingest.parse.pdf_lines import BROKEN_WORD, Cell, Line, is_same_row
from retrieval.ingest.parse.plain import MARKS

_MIN_ROWS: Final = 3
_MAX_ROW_GAP: Final = 4  #: Maximum distance of two rows, in heights of a line.
_MAX_LINE_GAP: Final = 1.5  #: The same of two lines of a cell.
_NEARER: Final = 0.9
_MAX_LINES: Final = 300
_MAX_CELLS: Final = 50
_MAX_CELL_LENGTH: Final = 100  #: In characters, on one line; prose has longer lines.
_MAX_MEAN_LENGTH: Final = 40  #: More are the columns of a page.
_MIN_LETTERS: Final = 2
#: The name of a column: a word or a year, possibly behind a sign, and no part of a longer name.
_NAME: Final = re.compile(r"(?:[(\"'#%$€£°]*+(?:[^\W\d_]|(?:19|20)\d\d(?!\d)).*(?<!,))?")


@dataclass(frozen=True, slots=True)
class Table:
    """The rows of a table, the first of which is its header."""

    rows: tuple[tuple[str, ...], ...]
    page: int


def with_tables(lines: Sequence[Line]) -> Iterator[Line | Table]:
    """Yield the lines of a page in order, those that make a table as one, and the parts of a row as one line."""
    lines = list(_whole_rows(lines))
    start = 0
    while start < len(lines):
        builder = _TableBuilder()
        end = next((at for at in range(start, len(lines)) if not builder.takes(lines[at])), len(lines))
        table = builder.table()
        if table:
            yield table
            start = end
        else:
            yield lines[start]
            start += 1


def _whole_rows(lines: Sequence[Line]) -> Iterator[Line]:
    """Yield lines, those that go on to the right as one: PDFium ends a line at a wide gap."""
    row: Line | None = None
    for line in lines:
        if row and is_same_row(row, line) and len(row.cells) <= _MAX_CELLS:
            row = replace(row, cells=(*row.cells, *line.cells))
            continue
        if row:
            yield row
        row = line
    if row:
        yield row


class _TableBuilder:
    """A table that grows line by line, as long as its columns stay apart."""

    def __init__(self) -> None:
        self._columns: list[tuple[float, float]] = []
        self._rows: list[list[str]] = []
        self._last: Line | None = None
        self._taken = 0
        self._row_gap = math.inf

    def takes(self, line: Line) -> bool:
        """Add a line and return True if it is a row, or goes on with the cells of the last one."""
        self._taken += 1
        is_long = len(line.cells) > _MAX_CELLS or any(len(cell.text) > _MAX_CELL_LENGTH for cell in line.cells)
        if self._taken > _MAX_LINES or is_long:
            return False
        if self._last is None:
            self._columns = [(cell.left, cell.right) for cell in line.cells]
            self._rows = [[cell.text for cell in line.cells]]
            self._last = line
            return len(line.cells) > 1 and _could_be_header(self._rows[0])
        gap = (self._last.bottom - line.bottom) / max(line.height, 1)
        if not 0 < gap < _MAX_ROW_GAP:
            return False
        self._widen(line)
        places = [self._place(cell) for cell in line.cells]
        columns = list(self._columns)
        for place, cell in zip(places, line.cells, strict=True):
            columns[place] = (min(columns[place][0], cell.left), max(columns[place][1], cell.right))
        is_apart = all(one[1] < other[0] for one, other in pairwise(columns))
        goes_on = self._goes_on(places, gap)
        if not is_apart or len(set(places)) < len(places) or not (goes_on or self._is_row(line, places)):
            return False
        if not goes_on:
            self._row_gap = min(self._row_gap, gap)
            self._rows.append([""] * len(columns))
        for place, cell in zip(places, line.cells, strict=True):
            text = f"{self._rows[-1][place]} {cell.text}".strip()
            self._rows[-1][place] = text.replace(f"{BROKEN_WORD} ", BROKEN_WORD)
        self._columns, self._last = columns, line
        return True

    def table(self) -> Table | None:
        """Return the table if it is one: a header with rows of short cells below it."""
        if self._last is None or len(self._rows) < _MIN_ROWS:
            return None
        is_wordy = fmean(len(cell) for row in self._rows for cell in row) > _MAX_MEAN_LENGTH
        return None if is_wordy else Table(tuple(map(tuple, self._rows)), self._last.page)

    def _goes_on(self, places: Sequence[int], gap: float) -> bool:
        """Return whether a line has more of the last row: a cell behind the first column, or several that are near."""
        max_gap = _MAX_LINE_GAP if len(places) == 1 else _NEARER * min(self._row_gap, _MAX_LINE_GAP)
        return places[0] > 0 and gap < max_gap

    def _is_row(self, line: Line, places: Sequence[int]) -> bool:
        """Return whether a line is another row; names without a first cell are the header of another table."""
        is_header = places[0] > 0 and len(self._rows) > 1 and _could_be_header(["", *(it.text for it in line.cells)])
        return len(places) > 1 and not is_header

    def _widen(self, line: Line) -> None:
        """Add a first column that the header has no name for."""
        is_left = line.cells[0].right < self._columns[0][0]
        if len(self._rows) == 1 and is_left and len(line.cells) > len(self._columns):
            self._columns.insert(0, (line.left, line.cells[0].right))
            self._rows[0].insert(0, "")

    def _place(self, cell: Cell) -> int:
        """Return the index of the column that a cell is nearest to."""

        def distance(at: int) -> float:
            left, right = self._columns[at]
            return max(left - cell.right, cell.left - right, 0)

        return min(range(len(self._columns)), key=distance)


def _could_be_header(row: Sequence[str]) -> bool:
    """Return whether a row names columns: no list item, no figures but years, no "Name:" of a form."""
    first, *others = row
    is_named = not first or (sum(map(str.isalpha, first)) >= _MIN_LETTERS and first[0] not in MARKS)
    is_form = any(cell.endswith(":") for cell in row)
    return is_named and not is_form and all(map(_NAME.fullmatch, others))
