"""Tables in the text of chunks and hits."""

from dataclasses import replace

from explorer.components.chunk_tables import Table, hit_table, text_and_tables
from explorer.components.snippets import hit_text
from retrieval.engine.types import TermMatch
from tests.explorer.conftest import FIRST, RUNBOOKS, facts

AMOUNTS = "Item | Limit\nHotel in a city | 145 euros\nLunch | 18 euros\nTrain | none\nCoffee | 2 euros"


def cells(row):
    return ["".join(segment.text for segment in cell) for cell in row]


def test_texts_and_tables_come_in_order():
    before, table, after = text_and_tables(f"See below.\n\n{AMOUNTS}\n\nA | single line is text.\nThe end.")
    assert (before, after) == ("See below.", "A | single line is text.\nThe end.")
    assert cells(table.header) == ["Item", "Limit"]
    assert [cells(row)[0] for row in table.rows] == ["Hotel in a city", "Lunch", "Train", "Coffee"]


def test_a_row_with_figures_is_no_header():
    (table,) = text_and_tables("Lunch | 18\nCoffee | 2")
    assert (table.header, len(table.rows)) == ((), 2)
    assert text_and_tables("") == ()


def shown(text, *lexemes):
    matches = tuple(TermMatch(it, 1.0, 0.1, "C") for it in lexemes)
    found = replace(FIRST, facts=facts(1, text=text), matches=matches)
    _, snippet = hit_text(found, RUNBOOKS)
    return hit_table(found, RUNBOOKS, snippet)


def test_a_hit_on_a_table_shows_the_rows_that_match_first():
    table = shown(AMOUNTS, "coffe")
    assert isinstance(table, Table)
    assert [cells(row) for row in table.rows] == [
        ["Hotel in a city", "145 euros"],
        ["Lunch", "18 euros"],
        ["Coffee", "2 euros"],
    ]
    assert [segment.matched for segment in table.rows[-1][0]] == [True]


def test_a_row_beyond_the_snippet_is_shown_if_it_matches_best():
    rows = [f"Place {number} | {number} euros for a long stay in the hotel" for number in range(20)]
    table = shown("\n".join(["Hotel | Limit", *rows, "Hotel in Bergen | 210 euros"]), "hotel", "limit", "bergen")
    assert cells(table.rows[-1]) == ["Hotel in Bergen", "210 euros"]


def test_a_hit_on_text_beside_a_table_shows_the_text():
    assert shown(f"{'The rules of travel are long. ' * 20}\n\n{AMOUNTS}", "rule") is None
