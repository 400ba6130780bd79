"""Old Excel workbooks (xls, before 2007)."""

from collections.abc import Iterator
from io import StringIO
from typing import Final

import xlrd

from retrieval.errors import IngestError
from retrieval.ingest.parse.grid import DATE, NUMBER, TEXT, CellBudget, Merge, Sheet, SheetBuilder, kind_of
from retrieval.ingest.parse.number_format import Clock, number_format
from retrieval.ingest.parse.sheets import workbook_document
from retrieval.text.document import ParsedDocument, RawDocument

_BOLD_WEIGHT: Final = 600


def parse_xls(raw: RawDocument) -> ParsedDocument:
    """Return the sheets as `parse_xlsx` does. Raises IngestError: `too_large`, `corrupt`, `encrypted`, `empty`."""
    try:
        book = xlrd.open_workbook(
            file_contents=raw.content, formatting_info=True, on_demand=True, ragged_rows=True, logfile=StringIO()
        )
    except xlrd.XLRDError as error:
        if "encrypted" in str(error):
            raise IngestError("encrypted", "The file is protected by a password.") from error
        raise IngestError("corrupt", "The file is not an Excel workbook.") from error
    sheets = list(_sheets(book))
    return workbook_document(raw, sheets, {"author": book.user_name or ""})


def _sheets(book: xlrd.Book) -> Iterator[Sheet]:
    budget = CellBudget()
    clock = Clock.SINCE_1904 if book.datemode else Clock.SINCE_1900
    for index in range(book.nsheets):
        sheet = book.sheet_by_index(index)
        builder = SheetBuilder(sheet.name, budget, is_hidden=bool(sheet.visibility))
        for row in range(sheet.nrows):
            for column, cell in enumerate(sheet.row(row)):
                text, kind = _shown(book, cell, clock)
                weight = book.font_list[book.xf_list[cell.xf_index].font_index].weight
                builder.add(row + 1, column, text, kind, is_bold=bool(weight >= _BOLD_WEIGHT))
        merges = (Merge(top + 1, left, bottom, right - 1) for top, bottom, left, right in sheet.merged_cells)
        yield builder.built(merges)
        book.unload_sheet(index)


def _shown(book: xlrd.Book, cell: xlrd.sheet.Cell, clock: Clock) -> tuple[str, str]:
    if cell.ctype == xlrd.XL_CELL_TEXT:
        return cell.value, kind_of(cell.value)
    if cell.ctype in (xlrd.XL_CELL_NUMBER, xlrd.XL_CELL_DATE):
        found = number_format(book.format_map[book.xf_list[cell.xf_index].format_key].format_str)
        return found.shown(cell.value, clock), DATE if found.is_date else NUMBER
    if cell.ctype == xlrd.XL_CELL_BOOLEAN:
        return ("TRUE" if cell.value else "FALSE"), TEXT
    if cell.ctype == xlrd.XL_CELL_ERROR:
        return xlrd.error_text_from_code.get(cell.value, ""), NUMBER
    return "", TEXT
