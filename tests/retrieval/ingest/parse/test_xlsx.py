import re
import time
import zipfile
from datetime import date, datetime
from io import BytesIO
from unicodedata import normalize

import openpyxl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from openpyxl.styles import Font

from retrieval.errors import IngestError
from retrieval.ingest.parse import parse
from retrieval.ingest.parse.xlsx import parse_xlsx
from retrieval.text.document import RawDocument
from tests.profiles import examples


def saved(workbook):
    written = BytesIO()
    workbook.save(written)
    return written.getvalue()


def with_part(content, name, change):
    """Return a workbook with one part changed by a function of its bytes."""
    written = BytesIO()
    with zipfile.ZipFile(BytesIO(content)) as old, zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as new:
        for part in old.namelist():
            new.writestr(part, change(old.read(part)) if part == name else old.read(part))
    return written.getvalue()


def reason_of(content, name="a.xlsx"):
    with pytest.raises(IngestError) as caught:
        parse(RawDocument(name, content))
    return caught.value.reason


def test_a_workbook_becomes_a_section_a_sheet(raw, shape):
    workbook = openpyxl.Workbook()
    workbook.properties.title, workbook.properties.creator = "Budget", "Ann"
    workbook.active.title = "Plan"
    workbook.active.append(["City", "Sales"])
    workbook.active.append(["Oslo", 3])
    workbook.create_sheet("Empty")
    workbook.create_sheet("Old")["A1"] = "Nothing else"
    workbook["Old"].sheet_state = "hidden"
    document = parse_xlsx(raw(saved(workbook), name="x.xlsx"))
    assert (document.title, document.source_type) == ("Budget", "excel")
    assert shape(document) == [(2, "Plan"), ("table", "City | Sales\nOslo | 3"), (2, "Old"), ("list", "Nothing else")]
    assert document.metadata["author"] == "Ann"
    assert document.metadata["sheets"] == "Plan, Empty, Old"
    assert document.metadata["hidden_sheets"] == "Old"


def test_values_are_shown_as_people_see_them(raw, xlsx_bytes):
    values = [
        (0.153, "0.0%", "15.3%"),
        (1234.5, '#,##0.00\\ "kg"', "1,234.50 kg"),
        (-5, '"$"#,##0;("$"#,##0)', "($5)"),
        (date(2024, 3, 5), "dd/mm/yyyy", "2024-03-05"),
        (datetime(2024, 3, 5, 18, 30), "yyyy-mm-dd hh:mm", "2024-03-05 18:30"),  # noqa: DTZ001 - dates of a sheet have no zone
        (True, "General", "TRUE"),
        ("#N/A", "General", "#N/A"),
        ("two\nlines", "General", "two lines"),
    ]

    def write(sheet):
        for number, (value, code, _) in enumerate(values, start=1):
            sheet.cell(number, 1, f"Value {number}")
            sheet.cell(number, 2, value).number_format = code

    text = parse_xlsx(raw(xlsx_bytes(write), name="x.xlsx")).blocks[-1].text
    assert text.splitlines() == [f"Value {number}: {shown}" for number, (_, _, shown) in enumerate(values, start=1)]


def test_a_formula_counts_by_its_result(raw, xlsx_bytes):
    def write(sheet):
        for row in (["Item", "Sum"], ["Total", "=1+2"], ["Other", "=2+2"]):
            sheet.append(row)

    content = xlsx_bytes(write)
    document = parse_xlsx(raw(content, name="x.xlsx"))
    assert document.metadata["uncalculated_formulas"] == "2"
    stored = with_part(
        content,
        "xl/worksheets/sheet1.xml",
        lambda xml: xml.replace(b"<v />", b"<v>7</v>").replace(b"<v></v>", b"<v>7</v>").replace(b"<v/>", b"<v>7</v>"),
    )
    document = parse_xlsx(raw(stored, name="x.xlsx"))
    assert document.blocks[-1].text == "Item | Sum\nTotal | 7\nOther | 7"
    assert "uncalculated_formulas" not in document.metadata


def test_bold_and_merged_cells_are_understood(raw, xlsx_bytes, shape):
    def write(sheet):
        for row in (["Name", "Role"], ["Ann", "Captain"], ["Bob", "Mate"]):
            sheet.append(row)
        for cell in sheet[1]:
            cell.font = Font(bold=True)
        sheet["D1"], sheet["E1"] = "Region", "City"
        sheet["F1"] = "Sales"
        sheet["D2"], sheet["E2"], sheet["F2"] = "North", "Oslo", 3
        sheet["E3"], sheet["F3"] = "Bergen", 4
        sheet.merge_cells("D2:D3")

    assert "North | Bergen | 4" in shape(parse_xlsx(raw(xlsx_bytes(write), name="x.xlsx")))[-1][1]


def bare_workbook(sheet, strings="<sst/>"):
    """Return the parts of the smallest workbook, its elements with a prefix, its targets from the root."""
    kind = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    relation = '<Relationship Id="{}" Type="{}/{}" Target="{}"/>'.format
    return {
        "_rels/.rels": f"<Relationships>{relation('r', kind, 'officeDocument', '/xl/workbook.xml')}</Relationships>",
        "xl/workbook.xml": '<x:workbook xmlns:x="s" xmlns:r="r"><x:sheet name="S" r:id="a"/></x:workbook>',
        "xl/_rels/workbook.xml.rels": "<Relationships>"
        + relation("a", kind, "worksheet", "/xl/s.xml")
        + relation("b", kind, "sharedStrings", "strings.xml")
        + '<Relationship Id="c" Type="x/styles" Target="https://example.com/x" TargetMode="External"/></Relationships>',
        "xl/s.xml": sheet,
        "xl/strings.xml": strings,
    }


def test_texts_without_their_readings_and_with_all_their_runs(raw, zipped):
    rich = "<si><r><t>rich </t></r><r><t>text</t></r><rPh sb='0' eb='1'><t>reading</t></rPh></si><si><t>12</t></si>"
    first = '<x:row r="2"><x:c r="A2" t="s"><x:v>0</x:v></x:c></x:row>'
    second = '<x:row><x:c t="s"><x:v>1</x:v></x:c><x:c t="s"><x:v>9</x:v></x:c></x:row>'
    sheet = f'<x:worksheet xmlns:x="s"><x:sheetData>{first}{second}</x:sheetData></x:worksheet>'
    document = parse_xlsx(raw(zipped(bare_workbook(sheet, f"<sst>{rich}</sst>")), name="x.xlsx"))
    assert [(block.text, block.row) for block in document.blocks] == [("S", None), ("rich text\n12", 2)]


def test_cells_without_references_follow_one_another(raw, xlsx_bytes):
    content = xlsx_bytes(lambda sheet: [sheet.append(["Item", "Sum"]), sheet.append(["Pen", 2])])
    bare = with_part(content, "xl/worksheets/sheet1.xml", lambda xml: re.sub(rb' r="[A-Z]*\d+"', b"", xml))
    assert parse_xlsx(raw(bare, name="x.xlsx")).blocks[-1].text == "Item | Sum\nPen | 2"


CELLS = (
    st.none()
    | st.integers(-(10**9), 10**9)
    | st.text(
        st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Z", "Cf", "Cn", "Co"], exclude_characters="|="),
        max_size=8,
    )
)


@settings(max_examples=examples(40), deadline=None)
@given(st.lists(st.lists(CELLS, min_size=1, max_size=5), min_size=1, max_size=8))
def test_another_reader_finds_the_same_values(table):
    workbook = openpyxl.Workbook()
    workbook.active.append(["First"])
    for row in table:
        workbook.active.append(row)
    content = saved(workbook)
    text = "\n".join(block.text for block in parse_xlsx(RawDocument("x.xlsx", content)).blocks)
    for row in openpyxl.load_workbook(BytesIO(content)).active.iter_rows(values_only=True):
        # Text is kept in Unicode's composed form.
        values = (normalize("NFC", str(value)).strip("=") for value in row if value is not None)
        assert all(value in text or not value.strip() for value in values)


def test_an_archive_that_unpacks_to_too_much_is_refused(xlsx_bytes):
    content = xlsx_bytes(lambda sheet: sheet.append(["x"]))
    assert reason_of(with_part(content, "xl/worksheets/sheet1.xml", lambda _: bytes(64 * 1024 * 1024))) == "too_large"


@pytest.mark.parametrize("part", ["xl/s.xml", "xl/strings.xml", "xl/workbook.xml", "_rels/.rels"])
def test_entities_are_refused(zipped, part):
    parts = bare_workbook("<worksheet><sheetData><row><c><v>1</v></c></row></sheetData></worksheet>")
    assert parse(RawDocument("x.xlsx", zipped(parts))).blocks
    bomb = '<!DOCTYPE x [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;">]>'
    assert reason_of(zipped({**parts, part: bomb + parts[part]})) == "corrupt"


def test_elements_nested_out_of_proportion_are_refused(zipped):
    assert reason_of(zipped(bare_workbook("<a>" * 100_000))) == "corrupt"


def test_a_sheet_of_a_million_rows_is_refused_in_time(zipped):
    rows = "".join(
        f"<row><c><v>{row}</v></c><c><v>{row * 7}</v></c><c><v>{row * 31}</v></c></row>" for row in range(10**6)
    )
    content = zipped(bare_workbook(f"<worksheet><sheetData>{rows}</sheetData></worksheet>"))
    started = time.process_time()
    assert reason_of(content) == "too_large"
    assert time.process_time() - started < 10


def test_a_cell_far_away_costs_nothing(raw, xlsx_bytes):
    def write(sheet):
        sheet["A1"], sheet["XFD1048576"] = "near", "far"

    document = parse_xlsx(raw(xlsx_bytes(write), name="x.xlsx"))
    assert [block.text for block in document.blocks[1:]] == ["near", "far"]
    assert document.blocks[-1].row == 1_048_576


@pytest.mark.parametrize("part", ["xl/workbook.xml", "xl/worksheets/sheet1.xml", "_rels/.rels"])
def test_damage_is_said(xlsx_bytes, part):
    content = xlsx_bytes(lambda sheet: sheet.append(["x"]))
    assert reason_of(with_part(content, part, lambda xml: xml[: len(xml) // 2])) == "corrupt"
    assert reason_of(b"PK\x03\x04 and no more") == "corrupt"


def test_an_empty_workbook_says_so():
    assert reason_of(saved(openpyxl.Workbook())) == "empty"
