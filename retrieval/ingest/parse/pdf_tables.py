"""Tables of a PDF page: those with drawn borders, and lines whose cells are below each other, under a header."""

import math
import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise
from statistics import fmean
from typing import Final

from retrieval.ingest.parse.pdf_lines import BROKEN_WORD, Cell, Line, cells_of, is_same_row
from retrieval.ingest.parse.pdf_rules import Grid
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
_INSET: Final = 2.0  #: Text may begin so many points before the border of its cell.
_MIN_COLUMNS: Final = 2
_MIN_FILLED: Final = 0.6  #: Share of the cells within borders that have a text; charts have few between their lines.
_MAX_DRAWN_LENGTH: Final = 1_000  #: Of a cell, in characters.
_PROSE: Final = re.compile(r".{12,}[.,;:]|.{81,}", re.DOTALL)  #: No name of a column.
_TEXT: Final = re.compile(r"[^\W_]|-")  #: What a column of signs for money does not have.
#: The name of a column: a word or a year, possibly behind a sign, and no part of a longer name.
_NAME: Final = re.compile(r"(?:[(\"'#%$€£°]*+(?:[^\W\d_]|(?:19|20)\d\d(?!\d)).*(?<!,))?")


@dataclass(frozen=True, slots=True)
class Table:
    """The rows of a table."""

    rows: tuple[tuple[str, ...], ...]
    page: int  #: Where it begins.
    last_page: int
    columns: tuple[float, ...] = ()  #: The drawn borders of its columns.

    @property
    def is_named(self) -> bool:
        """Whether the first of several rows names every column but perhaps the first, and each column has texts."""
        header, *rows = self.rows
        if len(rows) < _MIN_ROWS - 1 or not all(header[1:]) or any(map(_PROSE.fullmatch, header)):
            return False
        return _could_be_header(header) and all(any(map(_TEXT.search, it)) for it in zip(*rows, strict=True))

    def continued_by(self, other: "Table") -> "Table | None":
        """Return both as one if the other is the same table on the next page, which may repeat the header."""
        is_next = other.page == self.last_page + 1 and len(self.rows[0]) == len(other.rows[0])
        is_alike = 0 < len(self.columns) == len(other.columns) and all(map(_is_near, self.columns, other.columns))
        if not (is_next and is_alike):
            return None
        repeated = other.rows[0] == self.rows[0]
        return replace(self, rows=(*self.rows, *other.rows[repeated:]), last_page=other.last_page)


def with_tables(lines: Sequence[Line], grids: Sequence[Grid], above: Table | None) -> Iterator[Line | Table]:
    """Yield the lines of a page in order, those that make a table as one, and the parts of a row as one line.

    Borders make a table if its first row names its columns, or if it goes on with the table that is right `above`.
    """
    table_of: dict[Line, Table] = {}
    for grid in grids:
        inside = [line for line in lines if line not in table_of and grid.row(line.middle) is not None]
        table = _drawn_table(grid, inside)
        goes_on = table and above and lines[0] in inside and above.continued_by(table)
        if table and (table.is_named or goes_on):
            table_of |= dict.fromkeys(inside, table)
    shown: set[Table] = set()
    for table, group in groupby(lines, key=table_of.get):
        if table is None:
            yield from _with_tables_by_layout(group)
        elif table not in shown:
            shown.add(table)
            yield table


def _drawn_table(grid: Grid, lines: Sequence[Line]) -> Table | None:
    """Return the lines within a grid as a table, without empty rows and columns; None where most cells are empty."""
    placed = [(line, cell) for line in sorted(lines, key=lambda it: -it.bottom) for cell in _cells_in(grid, line)]
    columns = grid.columns or _columns(cell for _, cell in placed)
    texts: dict[tuple[int, int], list[str]] = defaultdict(list)
    for line, cell in placed:
        row, column = grid.row(line.middle), bisect_right(columns, cell.left + _INSET) - 1
        if row is None or not 0 <= column < len(columns) - bool(grid.columns):
            return None
        texts[row, column].append(cell.text)
    across, down = sorted({column for _, column in texts}), sorted({row for row, _ in texts})
    if len(across) < _MIN_COLUMNS or len(texts) < _MIN_FILLED * len(across) * len(down):
        return None
    joined = {place: _joined(parts) for place, parts in texts.items()}
    lengths = list(map(len, joined.values()))
    if max(lengths) > _MAX_DRAWN_LENGTH or (not grid.columns and fmean(lengths) > _MAX_MEAN_LENGTH):
        return None
    rows = tuple(tuple(joined.get((row, column), "") for column in across) for row in down)
    return Table(rows, lines[0].page, lines[0].page, columns)


def _cells_in(grid: Grid, line: Line) -> tuple[Cell, ...]:
    """Return the cells of a line that borders part, or wide gaps where columns have none."""
    if not grid.columns:
        return line.cells
    return cells_of(line.words, lambda word, following: grid.parts(word.right, following.left, line.middle))


def _columns(cells: Iterable[Cell]) -> tuple[float, ...]:
    """Return the left ends of columns that no cell crosses."""
    lefts: list[float] = []
    right = -math.inf
    for cell in sorted(cells, key=lambda it: it.left):
        if cell.left > right:
            lefts.append(cell.left)
        right = max(right, cell.right)
    return tuple(lefts)


def _joined(parts: Sequence[str]) -> str:
    return " ".join(parts).replace(f"{BROKEN_WORD} ", BROKEN_WORD)


def _is_near(one: float, other: float) -> bool:
    return abs(one - other) < _INSET


def _with_tables_by_layout(lines: Iterable[Line]) -> Iterator[Line | Table]:
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


def _whole_rows(lines: Iterable[Line]) -> Iterator[Line]:
    """Yield lines, those that go on to the right as one: PDFium ends a line at a wide gap."""
    row: Line | None = None
    for line in lines:
        if row and is_same_row(row, line) and len(row.cells) <= _MAX_CELLS:
            row = replace(row, cells=(*row.cells, *line.cells), words=(*row.words, *line.words))
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
            self._rows[-1][place] = _joined([it for it in (self._rows[-1][place], cell.text) if it])
        self._columns, self._last = columns, line
        return True

    def table(self) -> Table | None:
        """Return the table if it is one: a header with rows of short cells below it."""
        if self._last is None or len(self._rows) < _MIN_ROWS:
            return None
        is_wordy = fmean(len(cell) for row in self._rows for cell in row) > _MAX_MEAN_LENGTH
        page = self._last.page
        return None if is_wordy else Table(tuple(map(tuple, self._rows)), page, page)

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
