import csv
from io import StringIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.errors import IngestError
from retrieval.ingest.parse import parse
from retrieval.text.document import RawDocument


def read(text, name="a.csv", encoding="utf-8"):
    document = parse(RawDocument(name, text.encode(encoding)))
    assert document.source_type == "csv"
    return [(block.text, block.row) for block in document.blocks]


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_the_delimiter_is_found(delimiter):
    lines = [["City", "Sales", "Note"], ["Oslo", "3", "a, b; c"], ["Rome", "4", "d, e; f"]]
    text = "\n".join(delimiter.join(f'"{cell}"' if " " in cell else cell for cell in line) for line in lines)
    assert read(text) == [("City | Sales | Note\nOslo | 3 | a, b; c\nRome | 4 | d, e; f", 2)]


def test_a_stated_delimiter_wins():
    assert read("sep=;\nCity;Sales\nOslo;3,5\nRome;4,5") == [("City | Sales\nOslo | 3,5\nRome | 4,5", 2)]


def test_newlines_in_quotes_stay_in_their_cell_and_rows_are_records():
    found = read('Name,Age\n"Ann\nLee",3\nBob,4\n\n\nCay,5')
    assert found == [("Name | Age\nAnn Lee | 3\nBob | 4", 2), ("Name | Age\nCay | 5", 6)]


def test_rows_may_be_of_any_length():
    found = read("Name,Age,City\nAnn\nBob,4,Oslo,extra\nCay,5")
    assert found == [("Name | Age | City\nAnn\nBob | 4 | Oslo | extra\nCay | 5", 2)]


def test_other_charsets_are_read():
    assert read("名前,年齢,住所\n佐藤太郎,30,東京\n三木英子,25,大阪\n髙橋淳,35,名古屋\n", encoding="cp932")[0][
        0
    ].startswith("名前 | 年齢")


def test_a_table_without_figures_has_a_header_too():
    assert read("name,role,city\nann,captain,oslo\nbob,mate,rome")[0][0].startswith("name | role | city\n")


@pytest.mark.parametrize(
    "content",
    [b"x" * 50_000_000, b'a,b\n"' + b"x," * 1_000_000, b"," * 1_000_000, b"1,2\n" * 2_100_000],
    ids=["a long line", "an open quote", "many columns", "many rows"],
)
def test_what_no_sheet_can_hold_is_refused(content):
    with pytest.raises(IngestError) as caught:
        parse(RawDocument("a.csv", content))
    assert caught.value.reason == "too_large"


WORDS = st.text("AbcdéßЖ019", min_size=1, max_size=6)
TABLES = st.integers(2, 5).flatmap(
    lambda width: st.lists(st.lists(WORDS, min_size=width, max_size=width), min_size=2, max_size=8)
)


@given(TABLES, st.sampled_from([",", ";", "\t", "|"]))
def test_what_was_written_is_read(table, delimiter):
    written = StringIO()
    csv.writer(written, delimiter=delimiter).writerows(table)
    lines = "\n".join(text for text, _ in read(written.getvalue())).splitlines()
    assert len(lines) == len(table)
    for line, row in zip(lines, table, strict=True):
        assert line in {" | ".join(row), ": ".join(row)}
