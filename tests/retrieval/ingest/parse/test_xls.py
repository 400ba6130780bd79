from io import BytesIO

import pytest
import xlwt

from retrieval.errors import IngestError
from retrieval.ingest.parse import parse
from retrieval.ingest.parse.xls import parse_xls
from retrieval.text.document import RawDocument


def saved(workbook):
    written = BytesIO()
    workbook.save(written)
    return written.getvalue()


@pytest.fixture
def old_workbook():
    workbook = xlwt.Workbook()
    sheet = workbook.add_sheet("Plan")
    bold = xlwt.easyxf("font: bold on")
    for row, cells in enumerate([["Region", "City", "Share", "Since"], ["North", "Oslo"], ["", "Bergen"]]):
        for column, cell in enumerate(cells):
            sheet.write(row, column, cell, bold) if row == 0 else cell and sheet.write(row, column, cell)
    for row, share in ((1, 0.153), (2, 0.5)):
        sheet.write(row, 2, share, xlwt.easyxf(num_format_str="0.0%"))
        sheet.write(row, 3, 45356, xlwt.easyxf(num_format_str="DD/MM/YYYY"))
    sheet.merge(1, 2, 0, 0)
    hidden = workbook.add_sheet("Old")
    hidden.write(0, 0, "Nothing else")
    hidden.visibility = 1
    return workbook


def test_an_old_workbook_is_read_as_a_new_one(raw, shape, old_workbook):
    document = parse_xls(raw(saved(old_workbook), name="budget.xls"))
    assert (document.title, document.source_type) == ("Budget", "excel")
    table = "Region | City | Share | Since\nNorth | Oslo | 15.3% | 2024-03-05\nNorth | Bergen | 50.0% | 2024-03-05"
    assert shape(document) == [(2, "Plan"), ("table", table), (2, "Old"), ("list", "Nothing else")]
    assert document.metadata["hidden_sheets"] == "Old"


def test_the_content_counts_more_than_the_name(old_workbook, xlsx_bytes):
    assert parse(RawDocument("budget.dat", saved(old_workbook))).source_type == "excel"
    assert parse(RawDocument("new.xls", xlsx_bytes(lambda sheet: sheet.append(["x"])))).source_type == "excel"
    page = b"<html><table><tr><th>City</th><th>Sales</th></tr><tr><td>Oslo</td><td>3</td></tr></table></html>"
    assert parse(RawDocument("export.xls", page)).source_type == "html"
    assert parse(RawDocument("export.xls", b"City\tSales\nOslo\t3")).source_type == "csv"


def test_damage_is_said(old_workbook):
    content = saved(old_workbook)
    with pytest.raises(IngestError) as caught:
        parse(RawDocument("a.xls", content.replace(b"\x09\x08\x10\x00", b"\xff\xff\x10\x00")))
    assert caught.value.reason == "corrupt"
