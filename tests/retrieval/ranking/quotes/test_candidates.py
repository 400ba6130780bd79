"""What can be quoted of passages."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.ranking.quotes.candidates import MAX_CHARACTERS, candidates, runs
from retrieval.text.units import split_units
from tests.passages import made


def texts(text, question=""):
    return [it.text for it in candidates([made(1, text)], question, "english")]


def test_each_sentence_can_be_quoted_and_neither_a_question_nor_what_is_cut_off():
    assert texts("goes on. Is it free? It is free. It is near.") == ["It is free.", "It is near."]
    assert texts("Policies\n\nleast_load takes the node with the lowest load.") == [
        "least_load takes the node with the lowest load."
    ]


def test_a_title_is_not_quoted_without_the_text_that_it_names():
    rules = "RULES FOR VISITORS\nOwner: Hanne\n\n6. Photographs\nOnly with consent.\n\n7. Smoking.\nIn the shelters."
    assert texts(rules) == ["Owner: Hanne", "Only with consent.", "7. Smoking.", "In the shelters."]
    assert texts("STAND CLEAR OF THE DOORS") == ["STAND CLEAR OF THE DOORS"]


def test_a_numbered_title_between_blank_lines_is_not_quoted_but_an_item_is():
    minutes = "3. Ticket prices\n\nThe board postponed it.\n\n4. Actions\n\nNo. | Who\n1 | Lena"
    assert texts(minutes) == ["The board postponed it.", "No. | Who\n1 | Lena"]
    assert texts("1. Open the valve\n\n2. Close the valve\n\nThen wait.")[0].startswith("1. Open the valve")


@pytest.mark.parametrize("text", ["5.5.", "12", "\u2014 7 \u2014"])
def test_a_sentence_without_a_letter_is_not_quoted(text):
    assert texts(f"{text}\n\nThe clock drifts.") == ["The clock drifts."]


def test_a_question_is_not_quoted_with_the_code_before_it():
    assert texts("$ run --all\n$ stop --now:\n\nQ: Is it done?\n\nIt is.") == ["$ run --all\n$ stop --now:", "It is."]


def test_a_sentence_of_few_words_is_quoted_with_the_next_one():
    assert texts("Is there one? Yes. The code is on the slip. Ask. Why? It helps.") == [
        "Yes.\nThe code is on the slip.",
        "The code is on the slip.",
        "Ask.",
        "It helps.",
    ]


def test_neither_few_words_nor_code_announce_a_list():
    assert texts("Yes. Bring these:\n\n- a coat\n- boots") == ["Yes.", "Bring these:\n- a coat\n- boots"]
    code = "$ run --all\n$ stop --now:"
    assert texts(f"{code}\n\n- a coat\n- boots") == [code, "- a coat\n- boots"]


def test_what_is_cut_off_is_not_quoted_with_the_next_sentence():
    assert texts("be paid. The fee is due in May.") == ["The fee is due in May."]


def test_steps_that_look_like_titles_stay_in_their_list():
    steps = "1. Chop the onions\n2. Fry them\n3. Serve with rice\nServes four people."
    assert texts(steps) == ["1. Chop the onions\n2. Fry them\n3. Serve with rice", "Serves four people."]


def test_two_long_steps_are_quoted_one_by_one():
    steps = [f"{number}. {'x' * 390}" for number in (1, 2)]
    assert texts("\n".join(steps)) == steps


def test_a_short_list_is_quoted_whole_with_the_sentence_that_announces_it():
    assert texts("Bring these:\n\n- a coat\n- boots") == ["Bring these:\n- a coat\n- boots"]


def test_of_a_longer_list_each_item_can_be_quoted_too_and_the_first_with_its_lead_in():
    items = [f"- item {number} {'x' * 90}" for number in range(4)]
    found = texts("\n".join(("Bring these:", "", *items)))
    whole = "\n".join(("Bring these:", *items))
    assert found == [whole, f"Bring these:\n{items[0]}", *items[1:]]


def test_of_a_list_that_is_too_long_the_beginning_can_be_quoted():
    items = [f"- item {number} {'x' * 90}" for number in range(9)]
    first, *others = texts("\n".join(("Bring these:", "", *items)))
    assert first == "\n".join(("Bring these:", *items[:6]))
    assert len(first) <= MAX_CHARACTERS
    assert others == [f"Bring these:\n{items[0]}", *items[1:]]


def test_of_steps_that_are_too_many_the_first_can_be_quoted_together():
    first, *others = texts("\n".join(f"{number}. step {'x' * 90}" for number in range(1, 10)))
    assert [line[:2] for line in first.split("\n")] == ["1.", "2.", "3.", "4.", "5.", "6."]
    assert len(others) == 9


def test_steps_with_their_commands_stay_together():
    text = "1. Stop it:\n\n$ stop --now\n\n2. Start it:\n\n$ start --now"
    assert texts(text) == ["1. Stop it:\n$ stop --now\n2. Start it:\n$ start --now"]


def test_an_item_is_quoted_with_the_items_nested_in_it():
    steps = "\n".join(f"{number}. step {'x' * 300}" for number in (1, 2))
    found = texts(f"{steps}\n3. Upgrade in this order:\n  1. data nodes\n  2. ingest nodes")
    assert "3. Upgrade in this order:\n1. data nodes\n2. ingest nodes" in found


def test_what_a_sentence_announces_is_no_heading():
    assert texts("Install it:\n\npip install it\n\nImport it afterwards.") == [
        "Install it:\npip install it",
        "Import it afterwards.",
    ]


def test_code_is_quoted_with_the_sentence_before_it():
    assert texts("First do this. Then run it.\n\n$ run --all") == [
        "First do this.",
        "Then run it.",
        "Then run it.\n$ run --all",
    ]


def test_a_small_table_is_quoted_whole_or_by_a_row_under_its_header():
    assert texts("Name | Age\nAnn | 30\nBen | 40") == [
        "Name | Age\nAnn | 30\nBen | 40",
        "Name | Age\nAnn | 30",
        "Name | Age\nBen | 40",
    ]


def test_a_small_table_without_a_header_is_only_quoted_whole():
    assert texts("Ann | 30\nBen | 40") == ["Ann | 30\nBen | 40"]


def test_of_a_larger_table_each_row_can_be_quoted_under_its_header():
    rows = [f"row {number} {'x' * 90} | {number}" for number in range(4)]
    assert texts("\n".join(("Name | No", *rows)))[1:] == [f"Name | No\n{row}" for row in rows]


def test_of_a_table_with_the_row_of_a_number_only_this_row_can_be_quoted():
    text = "Role | Orders up to\nLead | 1,000 euros\nDirector | 50,000 euros\n\nAsk the board."
    assert texts(text, "Who signs 20,000 euros?") == ["Ask the board.", "Role | Orders up to\nDirector | 50,000 euros"]


def test_the_years_above_figures_are_quoted_with_figures_alone():
    text = "Cost 2026 2025\nPeople 5.06 4.81\nRent 3.12 3.05"
    assert texts(text) == ["Cost 2026 2025\nPeople 5.06 4.81", "Cost 2026 2025\nRent 3.12 3.05"]


def test_a_candidate_knows_the_headings_above_it():
    passage = made(1, "Rooms\n\nPrices in euros\nSize | Price\nsmall | 5\nlarge | 9", headings=("Fees",))
    assert candidates([passage], "", "english")[-1].place == "Leave and absence > Fees > Rooms > Prices in euros"


def test_a_candidate_knows_the_question_or_numbered_title_above_it():
    text = "Q: Is the cache saved?\n\nA: Never. It would be old.\n\n4. Prices\n\nThey stay.\n\nWays in\n\nBy bus."
    found = {it.text: it.place for it in candidates([made(1, text)], "", "english")}
    assert "Is the cache saved?" in found["A: Never.\nIt would be old."]
    assert "Is the cache saved?" in found["It would be old."]
    assert found["They stay."].endswith("4. Prices")
    assert "4. Prices" not in found["By bus."]


@pytest.mark.parametrize("count", [1, 3])
def test_candidates_are_groups_with_several_items(count):
    (found,) = candidates([made(1, "\n".join(["- item"] * count))], "", "english")
    assert found.is_group == (count > 1)


@given(st.text(alphabet="ab1.:|- \n", max_size=300))
def test_every_unit_is_in_a_run_or_is_left_out_for_a_reason(text):
    units = split_units(text)
    quoted = {index for run in runs(text) for index in run}
    left = [units[index] for index in range(len(units)) if index not in quoted]
    assert all(unit.text.endswith(("?", ":")) or unit.text[:1].islower() for unit in left)
    assert all(0 <= run.start < run.stop <= len(units) for run in runs(text))
