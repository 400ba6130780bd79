"""Data tables of HTML, as opposed to layout tables, row by row."""

from collections.abc import Iterator
from typing import Final

from lxml.html import HtmlElement

_STRUCTURE: Final = ("table", "h1", "h2", "h3", "h4", "pre")
#: A cell with more text is a column of a page, not a value.
_MAX_CELL_CHARACTERS: Final = 2000
#: Maximum span; a larger one is a mistake or an attack.
_MAX_SPAN: Final = 50


def is_data_table(table: HtmlElement) -> bool:
    """Return whether a table has data, and is not for layout or around other blocks."""
    if table.get("role") in ("presentation", "none"):
        return False
    if table.find(".//tr") is None or any(element is not table for element in table.iter(*_STRUCTURE)):
        return False
    return all(sum(map(len, cell.itertext())) <= _MAX_CELL_CHARACTERS for cell in table.iter("td", "th"))


def table_rows(table: HtmlElement) -> tuple[list[list[str]], bool]:
    """Return the texts of the cells row by row, and whether the first row is a header.

    A cell that spans rows is repeated in each, so that every row is complete; a cell that spans columns is followed by
    empty cells, so that columns stay under their headers.
    """
    open_spans: dict[int, tuple[int, str]] = {}
    rows = [list(_cells(row, open_spans)) for row in table.iter("tr")]
    first = table.find(".//tr")
    has_header = first is not None and (
        first.getparent().tag == "thead" or all(cell.tag == "th" for cell in first.iterchildren("th", "td"))
    )
    return rows, has_header


def _cells(row: HtmlElement, open_spans: dict[int, tuple[int, str]]) -> Iterator[str]:
    """Yield the row's texts; `open_spans` has, by column, the remaining rows and the text."""
    column = 0
    for cell in row.iterchildren("td", "th"):
        while column in open_spans:
            yield _continued(column, open_spans)
            column += 1
        for block in cell.iter("p", "div", "br", "li", "dd", "dt"):
            block.text = f" {block.text or ''}"
            block.tail = f" {block.tail or ''}"
        text = " ".join("".join(cell.itertext()).split())
        if _span(cell, "rowspan") > 1:
            open_spans[column] = (_span(cell, "rowspan") - 1, text)
        yield text
        yield from [""] * (_span(cell, "colspan") - 1)
        column += _span(cell, "colspan")
    while column in open_spans:
        yield _continued(column, open_spans)
        column += 1


def _continued(column: int, open_spans: dict[int, tuple[int, str]]) -> str:
    left, text = open_spans.pop(column)
    if left > 1:
        open_spans[column] = (left - 1, text)
    return text


def _span(cell: HtmlElement, name: str) -> int:
    written = cell.get(name, "1").strip()
    return max(1, min(int(written), _MAX_SPAN)) if written.isdecimal() and len(written) <= len("9999") else 1
