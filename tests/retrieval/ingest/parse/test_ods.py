import pytest

from retrieval.errors import IngestError
from retrieval.ingest.parse import parse
from retrieval.ingest.parse.ods import parse_ods
from retrieval.text.document import RawDocument

TYPE = "application/vnd.oasis.opendocument.spreadsheet"


def cell(text, kind="string", **attributes):
    more = "".join(f' {name.replace("_", ":", 1).replace("_", "-")}="{value}"' for name, value in attributes.items())
    return f'<table:table-cell office:value-type="{kind}"{more}><text:p>{text}</text:p></table:table-cell>'


def row(*cells, repeated=1):
    return f'<table:table-row table:number-rows-repeated="{repeated}">{"".join(cells)}</table:table-row>'


BLANK = "<table:table-cell/>"


def parts(*rows, style="", more=None):
    sheet = f'<table:table table:name="Plan" table:style-name="t1">{"".join(rows)}</table:table>'
    content = f"<office:document-content><office:styles>{style}</office:styles>{sheet}</office:document-content>"
    facts = "<dc:title>Budget</dc:title><dc:creator>Ann</dc:creator><dc:date>2024-03-05T10:00:00</dc:date>"
    meta = f"<office:meta>{facts}</office:meta>"
    return {"mimetype": TYPE, "content.xml": content, "meta.xml": meta, **(more or {})}


def test_cells_are_read_as_the_file_shows_them(raw, zipped, shape):
    sheet = parts(
        row(cell("City"), cell("Share"), cell("Since"), cell("Note")),
        row(
            cell("Oslo"),
            cell("15.3%", "percentage", office_value="0.153"),
            cell("05.03.24", "date", office_date_value="2024-03-05"),
            cell("a<text:s/>b<office:annotation><text:p>aside</text:p></office:annotation>"),
        ),
    )
    document = parse_ods(raw(zipped(sheet), name="x.ods"))
    assert (document.title, document.source_type) == ("Budget", "excel")
    assert shape(document) == [(2, "Plan"), ("table", "City | Share | Since | Note\nOslo | 15.3% | 2024-03-05 | a b")]
    assert (document.metadata["author"], document.metadata["date"]) == ("Ann", "2024-03-05")


def test_repeated_and_merged_cells_count(raw, zipped):
    sheet = parts(
        row(BLANK, repeated=4),
        row(cell("Region"), cell("City"), cell("Sales")),
        row(cell("North", table_number_rows_spanned=2), cell("Oslo"), cell("3", "float", office_value=3)),
        row("<table:covered-table-cell/>", cell("Bergen"), cell("4", "float", office_value=4)),
        row(BLANK, cell("x", table_number_columns_repeated=2), repeated=2),
    )
    block = parse_ods(raw(zipped(sheet), name="x.ods")).blocks[-1]
    assert block.text == "Region | City | Sales\nNorth | Oslo | 3\nNorth | Bergen | 4\n | x | x\n | x | x"
    assert block.row == 6


def test_hidden_sheets_are_noted(raw, zipped):
    style = '<style:style style:name="t1"><style:table-properties table:display="false"/></style:style>'
    document = parse_ods(raw(zipped(parts(row(cell("x")), style=style)), name="x.ods"))
    assert document.metadata["hidden_sheets"] == "Plan"


def reason_of(content):
    with pytest.raises(IngestError) as caught:
        parse(RawDocument("download", content))
    return caught.value.reason


def test_hostile_and_locked_files_are_refused(zipped):
    many = row(cell("x", table_number_columns_repeated=16384), repeated=1048576)
    assert reason_of(zipped(parts(many))) == "too_large"
    assert reason_of(zipped({**parts(), "content.xml": '<!DOCTYPE x [<!ENTITY a "b">]><x>&a;</x>'})) == "corrupt"
    assert reason_of(zipped(parts(more={"META-INF/manifest.xml": "<manifest:encryption-data/>"}))) == "encrypted"
    assert (
        reason_of(zipped({"mimetype": "application/vnd.oasis.opendocument.graphics", "content.xml": "<x/>"}))
        == "unsupported_type"
    )
