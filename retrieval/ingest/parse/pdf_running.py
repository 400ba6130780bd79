"""Finds running headers, footers and page numbers: what stands at the edge of many pages."""

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Final

from retrieval.ingest.parse.pdf_lines import Line, is_apart, usual_leading

_PAGE_NUMBER: Final = re.compile(r"\W{0,100}(?:page\s+)?(?:#|[ivxlc]{1,7})(?:\s*(?:of|/|-)\s*#)?\W{0,100}")
#: A header or footer has at most so many lines before a gap, and so many such layers.
_MAX_EDGE_LINES: Final = 3
_MAX_LAYERS: Final = 3
_MIN_PAGES: Final = 3
_MIN_NUMBERED_PAGES: Final = 2
#: Between its first and its last page a running line stands on this share of the pages (left or right pages).
_SHARE_OF_SPAN: Final = 0.4
#: A line on this share of all pages says nothing about any of them.
_SHARE_OF_PAGES: Final = 0.4


def without_running_lines(pages: Sequence[Sequence[Line]]) -> list[list[Line]]:
    """Return the lines of each page without headers, footers and page numbers that repeat.

    A running line is set apart from the text, so the repeated header row of a table stays.
    """
    kept = [list(page) for page in pages]
    for _ in range(_MAX_LAYERS):
        outer = _without_outermost(kept)
        if outer == kept:
            break
        kept = outer
    return kept


def _without_outermost(pages: list[list[Line]]) -> list[list[Line]]:
    edges = [_edge_lines(page) for page in pages]
    running = _running_pages(edges)
    return [
        [line for line in page if line not in edge or number not in running.get(_signature(line), ())]
        for number, (page, edge) in enumerate(zip(pages, edges, strict=True))
    ]


def _running_pages(edges: Sequence[Iterable[Line]]) -> dict[str, set[int]]:
    """Return, by signature, the pages on which a line is running."""
    pages_of: defaultdict[str, set[int]] = defaultdict(set)
    for number, edge in enumerate(edges):
        for line in edge:
            pages_of[_signature(line)].add(number)
    return {signature: _repetitions(signature, pages, len(edges)) for signature, pages in pages_of.items()}


def _repetitions(signature: str, pages: set[int], page_count: int) -> set[int]:
    """Return the pages on which a line only repeats what a reader has seen; none when it is text.

    What stands on many but not most pages is the title of a chapter: it is kept where it first stands.
    """
    if _PAGE_NUMBER.fullmatch(signature):
        return pages if len(pages) >= _MIN_NUMBERED_PAGES else set()
    span = max(pages) - min(pages) + 1
    if len(pages) < _MIN_PAGES or len(pages) < _SHARE_OF_SPAN * span:
        return set()
    return pages if len(pages) >= _SHARE_OF_PAGES * page_count else pages - {min(pages)}


def _edge_lines(page: Sequence[Line]) -> frozenset[Line]:
    """Return the lines at the top and at the bottom that a gap separates from the text between."""
    downwards = sorted(page, key=lambda line: -line.bottom)
    leading = usual_leading(downwards)
    pairs = list(pairwise(downwards))
    top = _lines_to_gap([(above, is_apart(above, below, leading)) for above, below in pairs])
    bottom = _lines_to_gap([(below, is_apart(above, below, leading)) for above, below in reversed(pairs)])
    return frozenset(top + bottom)


def _lines_to_gap(edge: Sequence[tuple[Line, bool]]) -> list[Line]:
    """Return the lines up to the first gap; none when there is no gap after the first few."""
    nearest = edge[:_MAX_EDGE_LINES]
    gap = next((position for position, (_, apart) in enumerate(nearest, start=1) if apart), 0)
    return [line for line, _ in nearest[:gap]]


def _signature(line: Line) -> str:
    """Return what stays the same from page to page: the text with numbers as '#'."""
    return re.sub(r"\d+", "#", line.text).casefold().strip()
