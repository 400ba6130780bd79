"""What the rows of a region are: titles above it, header rows, labels with a value each."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from retrieval.ingest.parse.grid import NUMBER, TEXT, Row, Sheet
from retrieval.ingest.parse.regions import columns_of

_MAX_HEADER_ROWS: Final = 4
#: Rows below a header that are looked at to tell it from data.
_SAMPLED_ROWS: Final = 50
_MAX_NAME_LENGTH: Final = 80
_YEAR: Final = re.compile(r"(?:1[89]|20)\d\d")
#: A row of these below a header says what its figures are counted in; without brackets, only where no label is.
_UNIT: Final = re.compile(r"\(.{1,30}\)|\[.{1,30}\]|[%$€£¥‰]")
_BARE_UNIT: Final = re.compile(rf"{_UNIT.pattern}|[^\W\d]{{1,4}}(?:/[^\W\d]{{1,4}})?")
#: Of the columns, so many must be named by a row of text above rows of text.
_NAMED_SHARE: Final = 0.8
_TWO: Final = 2


@dataclass(frozen=True, slots=True)
class Header:
    """The columns of a table and what each is called."""

    columns: tuple[int, ...]
    names: tuple[str, ...]
    #: The columns that hold numbers or dates below their name.
    figures: frozenset[int] = frozenset()


def title_rows(rows: Sequence[Row]) -> int:
    """Return how many rows at the top hold a single text, above rows that hold more."""
    if len(columns_of(rows[:_SAMPLED_ROWS])) < _TWO:
        return 0
    count = 0
    while count < len(rows) and len(rows[count].columns) == 1 and rows[count].kinds == [TEXT]:
        count += 1
    return count if count < len(rows) else 0


def header_rows(sheet: Sheet, rows: Sequence[Row]) -> int:
    """Return how many of the first rows name the columns; 0 when all are data."""
    columns = columns_of(rows)
    if len(rows) < _TWO or len(columns) < _TWO or not _may_name(rows[0], columns):
        return 0
    count = 1
    while count < min(_MAX_HEADER_ROWS, len(rows) - 1) and _goes_on(sheet, rows, count, columns):
        count += 1
    return count if _differs(rows[count - 1], rows[count : count + _SAMPLED_ROWS], columns) else 0


def header_of(sheet: Sheet, rows: Sequence[Row], count: int) -> Header:
    """Return the header that the first `count` rows make, names in several rows joined from top to bottom."""
    columns = columns_of(rows)
    names: list[list[str]] = [[] for _ in columns]
    for row in rows[:count]:
        last, name = -1, ""
        for place, column in enumerate(columns):
            if text := row.text_at(column):
                last, name = sheet.across.get((row.number, column), column), text
            if column <= last and (not names[place] or names[place][-1] != name):
                names[place].append(name)
    return Header(tuple(columns), tuple(map(" ".join, names)), _figure_columns(rows[count:]))


def continued(header: Header, rows: Sequence[Row]) -> Header | None:
    """Return the header that rows without one share with a table above them, None when they are something else.

    Their figures must stand where that table has figures below a name; further columns to the left hold labels.
    """
    columns = columns_of(rows)
    known = dict(zip(header.columns, header.names, strict=True))
    named = {column for column in header.figures if known.get(column)}
    figures = _figure_columns(rows)
    if not figures or not figures <= named or any(column not in known for column in columns if column > min(figures)):
        return None
    together = sorted({*header.columns, *columns})
    return Header(tuple(together), tuple(known.get(column, "") for column in together), header.figures)


def are_pairs(rows: Sequence[Row]) -> bool:
    """Return True for labels with a value beside each."""
    columns = columns_of(rows)
    if len(columns) != _TWO:
        return False
    labels = [row.text_at(columns[0]) for row in rows]
    short = sum(row.kind_at(columns[0]) == TEXT and len(row.text_at(columns[0])) <= _MAX_NAME_LENGTH for row in rows)
    return short >= _NAMED_SHARE * len(rows) and len(set(labels)) >= _NAMED_SHARE * len(labels)


def _may_name(row: Row, columns: Sequence[int]) -> bool:
    """Return True when a row holds names, years or dates, and no other figures."""
    values = [place for place, column in enumerate(row.columns) if column != columns[0]]
    return bool(values) and all(_is_name(row.texts[place], row.kinds[place]) for place in values)


def _is_name(text: str, kind: str) -> bool:
    return kind != NUMBER or bool(_YEAR.fullmatch(text))


def _goes_on(sheet: Sheet, rows: Sequence[Row], count: int, columns: Sequence[int]) -> bool:
    """Return True when a row goes on the header above it: units, or names below names of groups."""
    above, row = rows[count - 1], rows[count]
    if not _may_name(row, columns) or not _has_figures(rows[count + 1 : count + 1 + _SAMPLED_ROWS]):
        return False
    labels = above.text_at(columns[0]), row.text_at(columns[0])
    unit = _UNIT if labels[1] else _BARE_UNIT
    if all(unit.fullmatch(text) for text in row.texts):
        return True
    if all(labels) and labels[0] != labels[1]:
        return False
    is_grouped = any((above.number, column) in sheet.across for column in above.columns)
    return is_grouped or len(above.columns) < len(row.columns) or (above.is_bold and row.is_bold)


def _figure_columns(rows: Sequence[Row]) -> frozenset[int]:
    sample = rows[:_SAMPLED_ROWS]
    cells = (cell for row in sample for cell in zip(row.columns, row.kinds, strict=True))
    return frozenset(column for column, kind in cells if kind != TEXT)


def _has_figures(rows: Sequence[Row]) -> bool:
    return any(kind != TEXT for row in rows for kind in row.kinds[1:])


def _differs(header: Row, body: Sequence[Row], columns: Sequence[int]) -> bool:
    """Return True when a row of names stands above rows that look otherwise."""
    if header.is_bold and not all(row.is_bold for row in body):
        return True
    if any(_figures_below(header, body, column) for column in columns[1:]):
        return True
    if any(header.kind_at(column) not in ("", TEXT) for column in columns[1:]):
        return False
    names = [text for text in header.texts if len(text) <= _MAX_NAME_LENGTH]
    is_full = len(set(names)) == len(header.texts) >= _NAMED_SHARE * len(columns)
    return is_full and len(columns) > _TWO


def _figures_below(header: Row, body: Sequence[Row], column: int) -> bool:
    """Return True when a name stands above a column of figures."""
    if not header.text_at(column):
        return False
    kinds = [kind for row in body if (kind := row.kind_at(column))]
    figures = [kind for kind in kinds if kind != TEXT]
    is_same = header.kind_at(column) != TEXT and all(kind == header.kind_at(column) for kind in figures)
    years_below = is_same and all(_YEAR.fullmatch(row.text_at(column)) for row in body if row.text_at(column))
    return 2 * len(figures) > len(kinds) and not years_below
