"""Finds running headers, footers and page numbers: what stands at the edge of many pages."""

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Final

from retrieval.ingest.parse.pdf_lines import Line, is_apart, usual_leading

_PAGE_NUMBER: Final = re.compile(r"\W*(?:page\s+)?(?:#|[ivxlc]{1,7})(?:\s*(?:of|/|-)\s*#)?\W*")
#: At most so many lines at each edge of a page can be running.
_MOST_EDGE_LINES: Final = 3
_FEWEST_PAGES: Final = 3
_FEWEST_NUMBERED_PAGES: Final = 2
#: Between its first and its last page a running line stands on this share of the pages (left or right pages).
_SHARE_OF_SPAN: Final = 0.4
#: A line on fewer of all pages than this is a repeated title, unless it stands on many pages.
_SHARE_OF_PAGES: Final = 0.2
_MANY_PAGES: Final = 8


def without_running_lines(pages: Sequence[Sequence[Line]]) -> list[list[Line]]:
    """Return the lines of each page without headers, footers and page numbers that repeat.

    A running line is set apart from the text, so the repeated header row of a table stays.
    """
    edges = [_edge_lines(page) for page in pages]
    running = _running_signatures(edges)
    return [
        [line for line in page if line not in edge or _signature(line) not in running]
        for page, edge in zip(pages, edges, strict=True)
    ]


def _running_signatures(edges: Sequence[Iterable[Line]]) -> set[str]:
    pages_of: defaultdict[str, set[int]] = defaultdict(set)
    for number, edge in enumerate(edges):
        for line in edge:
            pages_of[_signature(line)].add(number)
    return {signature for signature, pages in pages_of.items() if _is_running(signature, pages, len(edges))}


def _is_running(signature: str, pages: set[int], page_count: int) -> bool:
    if _PAGE_NUMBER.fullmatch(signature):
        return len(pages) >= _FEWEST_NUMBERED_PAGES
    span = max(pages) - min(pages) + 1
    is_common = len(pages) >= min(_SHARE_OF_PAGES * page_count, _MANY_PAGES)
    return len(pages) >= _FEWEST_PAGES and len(pages) >= _SHARE_OF_SPAN * span and is_common


def _edge_lines(page: Sequence[Line]) -> frozenset[Line]:
    """Return the lines at the top and at the bottom that a gap separates from the text between."""
    downwards = sorted(page, key=lambda line: -line.bottom)
    leading = usual_leading(downwards)
    pairs = list(zip(downwards, downwards[1:], strict=False))
    top = _lines_to_gap([(above, is_apart(above, below, leading)) for above, below in pairs])
    bottom = _lines_to_gap([(below, is_apart(above, below, leading)) for above, below in reversed(pairs)])
    return frozenset(top + bottom)


def _lines_to_gap(edge: Sequence[tuple[Line, bool]]) -> list[Line]:
    """Return the lines up to the last gap among the first few; none when nothing sets them apart."""
    nearest = edge[:_MOST_EDGE_LINES]
    gaps = [position for position, (_, apart) in enumerate(nearest, start=1) if apart]
    return [line for line, _ in nearest[: max(gaps, default=0)]]


def _signature(line: Line) -> str:
    """Return what stays the same from page to page: the text with numbers as '#'."""
    return re.sub(r"\d+", "#", line.text).casefold().strip()
