"""The grids that a PDF page draws: tables whose cells have borders."""

import ctypes
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Final

import pypdfium2
import pypdfium2.raw as pdfium

_NEAR: Final = 3.0  #: Rules at most so many points apart are one: the borders of neighbouring cells.
_MAX_SEGMENTS: Final = 20_000  #: Pages with more are drawings.
_MAX_RULES: Final = 600
_MAX_LINES: Final = 300  #: In each direction.
_MIN_PARTS: Final = 2  #: Rows and columns.
_MIN_ROWS_ALONE: Final = 3  #: Rows of a table without borders between its columns.
_STRAIGHT: Final = 1.0
_SLACK: Final = 0.5
_MAX_DEPTH: Final = 4
_DRAWN: Final = frozenset({pdfium.FPDF_PAGEOBJ_PATH, pdfium.FPDF_PAGEOBJ_FORM})

Object = Any  #: PDFium's handle of an object of a page.
Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Rule:
    """A drawn line: where it is across its direction, where it begins and ends; in points."""

    at: float
    start: float
    end: float


@dataclass(frozen=True, slots=True)
class Grid:
    """The borders of a table's rows, from top to bottom, and of its columns, from left to right.

    A table whose rows alone have borders has no `columns`. Merged cells have no `uprights` between them.
    """

    rows: tuple[float, ...]
    columns: tuple[float, ...]
    uprights: tuple[Rule, ...]

    def row(self, y: float) -> int | None:
        """Return the index of the row at a height, None outside."""
        return next((at for at, (top, bottom) in enumerate(pairwise(self.rows)) if bottom <= y < top), None)

    def parts(self, left: float, right: float, y: float) -> bool:
        """Return whether a border parts two places at a height."""
        return any(left <= it.at + _SLACK and it.at - _SLACK <= right and it.start < y < it.end for it in self.uprights)


def page_grids(page: pypdfium2.PdfPage) -> list[Grid]:
    """Return the grids that a page draws; none of a page that is a drawing."""
    levels, uprights = list[Rule](), list[Rule]()
    for number, ((left, bottom), (right, top)) in enumerate(_segments(page)):
        if number == _MAX_SEGMENTS:
            return []
        if abs(top - bottom) < _STRAIGHT:
            levels.append(Rule((bottom + top) / 2, min(left, right), max(left, right)))
        elif abs(right - left) < _STRAIGHT:
            uprights.append(Rule((left + right) / 2, min(bottom, top), max(bottom, top)))
    return grids(_merged(levels), _merged(uprights))


def grids(levels: Sequence[Rule], uprights: Sequence[Rule]) -> list[Grid]:
    """Return the grids of rules that touch each other, and of level rules of one length that nothing crosses."""
    if len(levels) + len(uprights) > _MAX_RULES:
        return []
    groups: list[tuple[list[Rule], list[Rule]]] = []
    alone: list[list[Rule]] = []
    for level in levels:
        crossing = [it for it in uprights if _touch(level, it)]
        if not crossing:
            same = next((it for it in alone if _is_below(it[-1], level)), [])
            if not same:
                alone.append(same)
            same.append(level)
            continue
        joined = [it for it in groups if any(upright in it[1] for upright in crossing)]
        groups = [it for it in groups if it not in joined]
        groups.append(([level], crossing))
        for own, others in joined:
            groups[-1][0].extend(own)
            groups[-1][1].extend(others)
    found = [Grid(_places(own)[::-1], _places(others), tuple(dict.fromkeys(others))) for own, others in groups]
    found += [Grid(_places(it)[::-1], (), ()) for it in alone]
    return [it for it in found if _is_table(it)]


def _is_table(grid: Grid) -> bool:
    if not grid.columns:
        return _MIN_ROWS_ALONE < len(grid.rows) <= _MAX_LINES
    return all(_MIN_PARTS < len(lines) <= _MAX_LINES for lines in (grid.rows, grid.columns))


def _is_below(above: Rule, level: Rule) -> bool:
    return abs(above.start - level.start) < _NEAR and abs(above.end - level.end) < _NEAR


def _touch(level: Rule, upright: Rule) -> bool:
    is_across = level.start - _NEAR <= upright.at <= level.end + _NEAR
    return is_across and upright.start - _NEAR <= level.at <= upright.end + _NEAR


def _places(rules: Iterable[Rule]) -> tuple[float, ...]:
    """Return where rules are, in order, those that are near each other once."""
    places: list[float] = []
    for at in sorted(rule.at for rule in rules):
        if not places or at - places[-1] > _NEAR:
            places.append(at)
    return tuple(places)


def _merged(rules: Iterable[Rule]) -> list[Rule]:
    """Return rules, those that are parts of one line as one."""
    lines: list[list[Rule]] = []
    for rule in sorted(rules, key=lambda it: it.at):
        if not lines or rule.at - lines[-1][0].at > _NEAR:
            lines.append([])
        lines[-1].append(rule)
    merged: list[Rule] = []
    for line in lines:
        parts = sorted(line, key=lambda it: it.start)
        one = parts[0]
        for part in parts[1:]:
            if part.start > one.end + _NEAR:
                merged.append(one)
                one = part
            one = replace(one, end=max(one.end, part.end))
        merged.append(one)
    return merged


def _segments(page: pypdfium2.PdfPage) -> Iterator[tuple[Point, Point]]:
    """Yield the ends of the straight lines that a page draws, in its coordinates, also those of shapes."""
    for drawn, matrix in _paths(page, pypdfium2.PdfMatrix(), 0):
        first = last = (0.0, 0.0)
        for at in range(pdfium.FPDFPath_CountSegments(drawn)):
            segment = pdfium.FPDFPath_GetPathSegment(drawn, at)
            x, y = ctypes.c_float(), ctypes.c_float()
            pdfium.FPDFPathSegment_GetPoint(segment, x, y)
            point = matrix.on_point(x.value, y.value)
            kind = pdfium.FPDFPathSegment_GetType(segment)
            if kind == pdfium.FPDF_SEGMENT_MOVETO:
                first = point
            elif kind == pdfium.FPDF_SEGMENT_LINETO:
                yield last, point
            if pdfium.FPDFPathSegment_GetClose(segment):
                yield point, first
            last = point


def _paths(
    parent: pypdfium2.PdfPage | Object, outer: pypdfium2.PdfMatrix, depth: int
) -> Iterator[tuple[Object, pypdfium2.PdfMatrix]]:
    """Yield the paths of a page or of a form in it, each with the matrix to the page's coordinates."""
    is_page = isinstance(parent, pypdfium2.PdfPage)
    count = pdfium.FPDFPage_CountObjects if is_page else pdfium.FPDFFormObj_CountObjects
    item = pdfium.FPDFPage_GetObject if is_page else pdfium.FPDFFormObj_GetObject
    for at in range(count(parent)):
        found = item(parent, at)
        kind = pdfium.FPDFPageObj_GetType(found)
        if kind not in _DRAWN:
            continue
        own = pdfium.FS_MATRIX()
        pdfium.FPDFPageObj_GetMatrix(found, own)
        matrix = pypdfium2.PdfMatrix.from_raw(own).multiply(outer)
        if kind == pdfium.FPDF_PAGEOBJ_PATH:
            yield found, matrix
        elif depth < _MAX_DEPTH:
            yield from _paths(found, matrix, depth + 1)
