"""Regions of a sheet, separated by blank rows and columns, with their titles, header rows and labels."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from retrieval.ingest.parse.grid import NUMBER, TEXT, Row, Sheet

_MAX_CUTS: Final = 4  #: Maximum depth of splits, which alternate between rows and columns.
_WIDE_GAP: Final = 3  #: Blank columns that separate two parts; a single one may be a spacer inside a table.
_LABEL_SHARE: Final = 0.6  #: Minimum share of text cells in a column of row labels.
_SAME_ROWS_SHARE: Final = 0.8  #: Two parts that share fewer of their rows are not one table.
#: Rows of a band that are examined for separate parts; more gaps than this are a pattern, not parts.
_SAMPLED_ROWS: Final = 200
_MAX_GAPS: Final = 100
_MAX_HEADER_ROWS: Final = 4
_HEADER_SAMPLE_ROWS: Final = 50
_MAX_NAME_LENGTH: Final = 80
_YEAR: Final = re.compile(r"(?:1[89]|20)\d\d")
#: Cells of a row of units below a header; units without brackets count only in a row without a label.
_UNIT: Final = re.compile(r"\(.{1,30}\)|\[.{1,30}\]|[%$€£¥‰]")
_BARE_UNIT: Final = re.compile(rf"{_UNIT.pattern}|[^\W\d]{{1,4}}(?:/[^\W\d]{{1,4}})?")
_NAMED_SHARE: Final = 0.8  #: Minimum share of columns that a header of text above rows of text must name.
_TWO: Final = 2


def regions(rows: Sequence[Row], cuts: int = _MAX_CUTS) -> Iterator[list[Row]]:
    """Yield the regions of a sheet, from top to bottom and then from left to right.

    Blank rows always separate regions. Blank columns do so only before a part whose first column has row labels: a
    column of figures belongs to the labels before it.
    """
    for band in _bands(rows):
        parts = _parts(band) if cuts else [band]
        if len(parts) == 1:
            yield band
        else:
            for part in parts:
                yield from regions(part, cuts - 1)


def columns_of(rows: Sequence[Row]) -> list[int]:
    """Return the columns that are filled in any of the rows, in order."""
    return sorted({column for row in rows for column in row.columns})


def _bands(rows: Sequence[Row]) -> Iterator[list[Row]]:
    band: list[Row] = []
    for row in rows:
        if band and row.number > band[-1].number + 1:
            yield band
            band = []
        band.append(row)
    if band:
        yield band


def _parts(band: list[Row]) -> list[list[Row]]:
    columns = columns_of(band)
    gaps = [(left, right) for left, right in pairwise(columns) if right > left + 1]
    if not 0 < len(gaps) <= _MAX_GAPS:
        return [band]
    sample = band[:_SAMPLED_ROWS]
    parts: list[list[Row]] = []
    first = columns[0]
    # The part after a gap reaches to the next gap.
    for (left, right), (end, _) in pairwise([*gaps, (columns[-1], columns[-1])]):
        before, after = _cut(sample, first, left), _cut(sample, right, end)
        if _are_separate(before, after, wide=right - left >= _WIDE_GAP):
            parts.append(_cut(band, first, left))
            first = right
    return [*parts, _cut(band, first, columns[-1])]


def _cut(band: Sequence[Row], first: int, last: int) -> list[Row]:
    cut = (row.between(first, last) for row in band)
    return [row for row in cut if row.columns]


def _are_separate(before: Sequence[Row], after: Sequence[Row], *, wide: bool) -> bool:
    columns = columns_of(after)
    if not before or not columns:
        return False
    if len(columns) == 1:
        return wide and not _has_many_figures(after)
    # The first column must have text in most rows.
    if sum(row.kind_at(columns[0]) == TEXT for row in after) < _LABEL_SHARE * len(after):
        return False
    if _has_many_figures(before) and _has_many_figures(after):
        return True
    first, second = ({row.number for row in rows} for rows in (before, after))
    return wide or len(first & second) / len(first | second) < _SAME_ROWS_SHARE


def _has_many_figures(rows: Sequence[Row]) -> bool:
    """Return whether more than a tenth of the cells below the first row are numbers or dates."""
    kinds = Counter(kind for row in rows[1:] for kind in row.kinds)
    return 10 * (kinds.total() - kinds[TEXT]) > kinds.total()


@dataclass(frozen=True, slots=True)
class Header:
    """The columns of a table and their names."""

    columns: tuple[int, ...]
    names: tuple[str, ...]
    figures: frozenset[int] = frozenset()


def title_rows(rows: Sequence[Row]) -> int:
    """Return how many rows at the top have only one text, above rows with more cells."""
    if len(columns_of(rows[:_HEADER_SAMPLE_ROWS])) < _TWO:
        return 0
    count = 0
    while count < len(rows) and len(rows[count].columns) == 1 and rows[count].kinds == [TEXT]:
        count += 1
    return count if count < len(rows) else 0


def header_rows(sheet: Sheet, rows: Sequence[Row]) -> int:
    """Return how many of the first rows name the columns; 0 if all are data."""
    columns = columns_of(rows)
    if len(rows) < _TWO or len(columns) < _TWO or not _may_name(rows[0], columns):
        return 0
    count = 1
    while count < min(_MAX_HEADER_ROWS, len(rows) - 1) and _continues_header(sheet, rows, count, columns):
        count += 1
    return count if _differs(rows[count - 1], rows[count : count + _HEADER_SAMPLE_ROWS], columns) else 0


def header_of(sheet: Sheet, rows: Sequence[Row], count: int) -> Header:
    """Return the header in the first `count` rows; names in several rows are joined from top to bottom."""
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
    """Return the header that rows without one share with a table above them, None for other rows.

    Their figures must be in columns where that table has figures below a name; further columns to the left are labels.
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
    """Return whether the rows are labels with one value each."""
    columns = columns_of(rows)
    if len(columns) != _TWO:
        return False
    labels = [row.text_at(columns[0]) for row in rows]
    short = sum(row.kind_at(columns[0]) == TEXT and len(row.text_at(columns[0])) <= _MAX_NAME_LENGTH for row in rows)
    return short >= _NAMED_SHARE * len(rows) and len(set(labels)) >= _NAMED_SHARE * len(labels)


def _may_name(row: Row, columns: Sequence[int]) -> bool:
    values = [place for place, column in enumerate(row.columns) if column != columns[0]]
    return bool(values) and all(row.kinds[it] != NUMBER or _YEAR.fullmatch(row.texts[it]) for it in values)


def _continues_header(sheet: Sheet, rows: Sequence[Row], count: int, columns: Sequence[int]) -> bool:
    """Return whether a row continues the header above it: units, or names below names of groups."""
    above, row = rows[count - 1], rows[count]
    below = rows[count + 1 : count + 1 + _HEADER_SAMPLE_ROWS]
    if not _may_name(row, columns) or not any(kind != TEXT for body in below for kind in body.kinds[1:]):
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
    sample = rows[:_HEADER_SAMPLE_ROWS]
    cells = (cell for row in sample for cell in zip(row.columns, row.kinds, strict=True))
    return frozenset(column for column, kind in cells if kind != TEXT)


def _differs(header: Row, body: Sequence[Row], columns: Sequence[int]) -> bool:
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
    if not header.text_at(column):
        return False
    kinds = [kind for row in body if (kind := row.kind_at(column))]
    figures = [kind for kind in kinds if kind != TEXT]
    is_same = header.kind_at(column) != TEXT and all(kind == header.kind_at(column) for kind in figures)
    years_below = is_same and all(_YEAR.fullmatch(row.text_at(column)) for row in body if row.text_at(column))
    return 2 * len(figures) > len(kinds) and not years_below
