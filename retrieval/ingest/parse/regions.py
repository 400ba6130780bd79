"""Splits a sheet into regions: what blank rows and columns keep apart."""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

from retrieval.ingest.parse.grid import TEXT, Row

#: Cuts alternate between rows and columns; sheets nest no deeper.
_MAX_CUTS: Final = 4
#: A gap of so many blank columns keeps two parts apart; one may be a spacer inside a table.
_WIDE_GAP: Final = 3
#: The share of cells in a column that must be text for it to name the rows.
_LABEL_SHARE: Final = 0.6
#: Two parts whose rows differ by this share were not laid out as one table.
_SAME_ROWS_SHARE: Final = 0.8
#: The first rows of a band tell whether its parts stand by themselves; more gaps than this are a pattern, not parts.
_SAMPLED_ROWS: Final = 200
_MAX_GAPS: Final = 100


def regions(rows: Sequence[Row], cuts: int = _MAX_CUTS) -> Iterator[list[Row]]:
    """Yield the regions of a sheet, from top to bottom and then from left to right.

    Blank rows always part. Blank columns part only what stands by itself: a part whose first
    column names its rows. A column of figures apart from its labels belongs to them.
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
    """Yield runs of rows without a blank row between them."""
    band: list[Row] = []
    for row in rows:
        if band and row.number > band[-1].number + 1:
            yield band
            band = []
        band.append(row)
    if band:
        yield band


def _parts(band: list[Row]) -> list[list[Row]]:
    """Return the parts of a band that blank columns keep apart."""
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
        if _stand_apart(before, after, wide=right - left >= _WIDE_GAP):
            parts.append(_cut(band, first, left))
            first = right
    return [*parts, _cut(band, first, columns[-1])]


def _cut(band: Sequence[Row], first: int, last: int) -> list[Row]:
    cut = (row.between(first, last) for row in band)
    return [row for row in cut if row.columns]


def _stand_apart(before: Sequence[Row], after: Sequence[Row], *, wide: bool) -> bool:
    columns = columns_of(after)
    if not before or not columns:
        return False
    if len(columns) == 1:
        return wide and not _holds_figures(after)
    if not _names_rows(after, columns[0]):
        return False
    if _holds_figures(before) and _holds_figures(after):
        return True
    return wide or _shared_rows(before, after) < _SAME_ROWS_SHARE


def _names_rows(rows: Sequence[Row], column: int) -> bool:
    """Return True when a column holds text beside most rows that hold anything."""
    texts = sum(row.kind_at(column) == TEXT for row in rows)
    return texts >= _LABEL_SHARE * len(rows)


def _holds_figures(rows: Sequence[Row]) -> bool:
    """Return True when a tenth of the cells below the first row hold numbers or dates."""
    kinds = Counter(kind for row in rows[1:] for kind in row.kinds)
    return 10 * (kinds.total() - kinds[TEXT]) > kinds.total()


def _shared_rows(one: Sequence[Row], other: Sequence[Row]) -> float:
    first, second = ({row.number for row in rows} for rows in (one, other))
    return len(first & second) / len(first | second)
