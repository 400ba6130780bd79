import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.errors import IngestError
from retrieval.ingest.parse.grid import CellBudget, Merge, SheetBuilder, column_number, kind_of
from retrieval.ingest.parse.sheets import blocks_of_sheets
from retrieval.text.document import BlockKind


def sheet_of(text, *, merges=(), bold=()):
    """Return a sheet written as lines with cells between bars; the rows in `bold` are bold."""
    builder = SheetBuilder("Sales", CellBudget())
    for number, line in enumerate(text.splitlines(), start=1):
        for column, cell in enumerate(line.split("|")):
            builder.add(number, column, cell.strip(), kind_of(cell), is_bold=number in bold)
    return builder.built(merges)


def read(text, **options):
    """Return the blocks below the sheet's heading as (kind or level, text, row)."""
    first, *blocks = blocks_of_sheets([sheet_of(text, **options)])
    assert (first.kind, first.level, first.text) == (BlockKind.HEADING, 2, "Sales")
    return [(block.level or block.kind.value, block.text, block.row) for block in blocks]


def test_a_table_begins_with_its_header_and_counts_from_its_first_row_of_data():
    assert read("City|Sales\nOslo|3\nRome|4") == [("table", "City | Sales\nOslo | 3\nRome | 4", 2)]


def test_a_lone_text_above_a_table_is_its_heading_and_further_ones_are_lines():
    assert read("Quarter\nin millions\nCity|Sales\nOslo|3") == [
        (3, "Quarter", 1),
        ("list", "in millions", 2),
        ("table", "City | Sales\nOslo | 3", 4),
    ]


def test_a_lone_text_apart_from_the_table_below_it_is_a_heading_too():
    assert read("Quarter\n\nCity|Sales\nOslo|3")[0] == (3, "Quarter", 1)


def test_a_text_over_some_columns_only_is_no_heading():
    assert read("||Estimates\nCity|2023|2024\nOslo|3|4\nRome|5|6")[0] == ("list", "Estimates", 1)


def test_blank_rows_part_regions_with_headers_of_their_own():
    found = read("City|Sales\nOslo|3\n\nProduct|Price\nPen|2")
    assert found == [("table", "City | Sales\nOslo | 3", 2), ("table", "Product | Price\nPen | 2", 5)]


def test_a_region_without_a_header_goes_on_with_the_one_above():
    found = read("Item|2023|2024\nCash|1|2\n\nLiabilities\n\nDebt|3|4\nTotal|4|6")
    assert found[1:] == [(3, "Liabilities", 4), ("table", "Item | 2023 | 2024\nDebt | 3 | 4\nTotal | 4 | 6", 6)]


def test_a_region_with_labels_further_in_goes_on_too():
    found = read("Item|||2023\nSales|||17\n\n|Costs||\n||Wages|5\n||Rent|7")
    assert found[1:] == [(3, "Costs", 4), ("table", "Item | 2023\nWages | 5\nRent | 7", 5)]


def test_figures_elsewhere_do_not_go_on():
    found = read("Item|2023\nSales|17\n\nOslo|3|4|5\nRome|6|7|8")
    assert found[1] == ("table", "Oslo | 3 | 4 | 5\nRome | 6 | 7 | 8", 4)


def test_tables_side_by_side_are_apart():
    found = read("City|Sales||Product|Price\nOslo|3||Pen|2\nRome|4||Ink|5")
    assert found == [
        ("table", "City | Sales\nOslo | 3\nRome | 4", 2),
        ("table", "Product | Price\nPen | 2\nInk | 5", 2),
    ]


def test_a_blank_column_between_labels_and_figures_is_a_spacer():
    assert read("Item||2023||2024\nCash||1||2") == [("table", "Item | 2023 | 2024\nCash | 1 | 2", 2)]


def test_names_in_several_rows_are_joined():
    merges = [Merge(1, 1, 1, 2), Merge(1, 3, 1, 4)]
    found = read("|2023||2024|\nItem|Plan|Real|Plan|Real\nCash|1|2|3|4", merges=merges)
    assert found == [("table", "Item | 2023 Plan | 2023 Real | 2024 Plan | 2024 Real\nCash | 1 | 2 | 3 | 4", 3)]


def test_units_below_the_names_belong_to_the_header():
    found = read("Item|Weight|Price\n|kg|(EUR)\nBox|3|4\nBag|1|2")
    assert found == [("table", "Item | Weight kg | Price (EUR)\nBox | 3 | 4\nBag | 1 | 2", 3)]


def test_years_are_names_above_figures_but_not_above_years():
    assert read("Item|2023|2024\nCash|17|18")[0][1].startswith("Item | 2023 | 2024\n")
    ((kind, text, row),) = read("Oslo|1905|2024\nRome|1861|2020")
    assert (kind, text, row) == ("table", "Oslo | 1905 | 2024\nRome | 1861 | 2020", 1)


def test_labels_beside_values_are_lines():
    assert read("Company:|ACME\nFounded|1999\nCity|Oslo") == [("list", "Company: ACME\nFounded: 1999\nCity: Oslo", 1)]


def test_a_bold_row_above_two_columns_of_text_is_a_header():
    assert read("Name|Role\nAnn|Captain\nBob|Mate", bold={1}) == [
        ("table", "Name | Role\nAnn | Captain\nBob | Mate", 2)
    ]


def test_an_outline_in_several_columns_becomes_one_label():
    found = read("Item|||2023\nAssets\n|Current\n||Cash|5\n|Fixed||7")
    assert found == [("table", "Item | 2023\nAssets\nCurrent\nCash | 5\nFixed | 7", 2)]


def test_a_cell_merged_over_rows_is_repeated():
    found = read("Region|City|Sales\nNorth|Oslo|3\n|Bergen|4", merges=[Merge(2, 0, 3, 0)])
    assert found[0][1].splitlines()[2] == "North | Bergen | 4"


def test_a_wide_table_is_cut_into_groups_of_columns_beside_the_first():
    names = [f"A rather long name of column {number}" for number in range(30)]
    found = read(
        "\n".join(
            "|".join(["City", *names]) if row == 0 else "|".join(["Oslo", *map(str, range(30))]) for row in range(2)
        )
    )
    assert len(found) > 2
    assert all(text.startswith("City | ") and text.splitlines()[1].startswith("Oslo | ") for _, text, _ in found)
    for number, name in enumerate(names):
        header, values = next(text.splitlines() for _, text, _ in found if name in text)
        assert values.split(" | ")[header.split(" | ").index(name)] == str(number)


def test_a_long_name_is_said_in_full_once():
    question = "How much do you agree with this sentence? " * 6
    found = read(f"Person|{question}\nAnn|3")
    assert question.strip() in found[0][1]
    assert len(found[1][1]) < len(question)


def test_long_tables_are_cut_into_blocks_with_header_and_row():
    found = read("\n".join(["City|Sales", *(f"C{row}|{row}" for row in range(2, 2502))]))
    assert [(text.splitlines()[:2], row) for _, text, row in found] == [
        (["City | Sales", f"C{row} | {row}"], row) for row in (2, 1002, 2002)
    ]


def test_more_cells_than_the_budget_are_refused():
    builder = SheetBuilder("Sales", CellBudget(2))
    builder.add(1, 0, "a", "text")
    builder.add(1, 1, "b", "text")
    with pytest.raises(IngestError) as caught:
        builder.add(1, 2, "c", "text")
    assert caught.value.reason == "too_large"


def test_cells_in_disorder_are_put_in_order():
    builder = SheetBuilder("Sales", CellBudget())
    for row, column, text in ((2, 1, "3"), (2, 0, "Oslo"), (1, 0, "City"), (1, 1, "Sales")):
        builder.add(row, column, text, kind_of(text))
    assert [block.text for block in blocks_of_sheets([builder.built()])] == ["Sales", "City | Sales\nOslo | 3"]


@pytest.mark.parametrize(("reference", "number"), [("A1", 0), ("Z9", 25), ("AA1", 26), ("XFD1048576", 16383)])
def test_columns_are_counted(reference, number):
    assert column_number(reference) == number


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        *[(text, "number") for text in ("12", "(1,234.5)", "$800K", "-3.2 %", "€ 5")],
        *[(text, "date") for text in ("2024-03-05", "5.3.24", "10:30")],
        *[(text, "text") for text in ("Oslo", "2022A", "FY2024", "A-12", "-")],
    ],
)
def test_figures_are_told_from_texts(text, kind):
    assert kind_of(text) == kind


CELLS = st.sampled_from(["", "", "", "Oslo", "Total", "12", "2023", "2024-01-01", "(USD)", "a longer text, with words"])


@given(
    st.lists(st.lists(CELLS, max_size=9), max_size=14), st.lists(st.builds(Merge, *[st.integers(1, 9)] * 4), max_size=3)
)
def test_every_cell_stands_in_a_block_and_rows_are_where_they_say(table, merges):
    builder = SheetBuilder("Sales", CellBudget())
    for number, cells in enumerate(table, start=1):
        for column, cell in enumerate(cells):
            builder.add(number, column, f"{cell} r{number}c{column}" if cell else "", kind_of(cell))
    blocks = list(blocks_of_sheets([builder.built(merges)]))
    everything = "\n".join(block.text for block in blocks)
    for number, cells in enumerate(table, start=1):
        for column, cell in enumerate(cells):
            assert not cell or f"{cell} r{number}c{column}" in everything
    for block in blocks:
        if block.row is not None:
            lines = block.text.splitlines()[bool(block.header) :]
            for number, line in enumerate(lines, start=block.row):
                # A merged cell stands in each of its rows.
                tops = {number, *(it.top for it in merges if it.top <= number <= it.bottom)}
                assert line == "|" or any(f" r{top}c" in line for top in tops)
