"""What can be quoted of a chunk."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.text.units import UnitKind, split_sentences, split_units


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("One here. Two there! Three?", ["One here.", "Two there!", "Three?"]),
        ("Ask Dr. Wells, e.g. on Monday. Then wait.", ["Ask Dr. Wells, e.g. on Monday.", "Then wait."]),
        ("You earn 2.25 days a month. See No. 4.", ["You earn 2.25 days a month.", "See No. 4."]),
        ("J. Doe signed it. Done.", ["J. Doe signed it.", "Done."]),
        ('He said "stop." Then he left.', ['He said "stop."', "Then he left."]),
        ("It ends... and goes on.", ["It ends... and goes on."]),
        ("一句话。又一句。", ["一句话。", "又一句。"]),
        ("no full stop", ["no full stop"]),
        ("", []),
    ],
)
def test_sentences_end_at_full_stops_that_are_no_abbreviations(text, sentences):
    assert split_sentences(text) == sentences


@given(st.text(alphabet='aB1 .!?")e。\n', max_size=80))
def test_splitting_loses_nothing_but_white_space(text):
    assert "".join("".join(split_sentences(text)).split()) == "".join(text.split())


@given(st.text(max_size=200))
def test_any_text_can_be_cut(text):
    assert all(unit.text.strip() for unit in split_units(text))


def test_a_hard_wrapped_sentence_becomes_one_line():
    (unit,) = split_units("For more than five days in a row you have to ask at least\nthree weeks ahead.")
    assert unit.text == "For more than five days in a row you have to ask at least three weeks ahead."


def test_a_short_line_before_a_capital_ends_where_it_ends():
    assert [unit.text for unit in split_units("7. Emergencies\nAmber beacon: leave the room. Siren: go.")] == [
        "7. Emergencies",
        "Amber beacon: leave the room.",
        "Siren: go.",
    ]


def test_table_rows_carry_their_header():
    units = split_units("Occasion | Days\nAdoption | 15\nWedding | 2")
    assert [(unit.kind, unit.text, unit.header) for unit in units] == [
        (UnitKind.ROW, "Adoption | 15", "Occasion | Days"),
        (UnitKind.ROW, "Wedding | 2", "Occasion | Days"),
    ]


def test_list_items_take_the_lines_that_continue_them():
    units = split_units("1. Fetch a probe; its\n   certificate is on the sleeve.\n2. Hang it.\n\n- one\n- two")
    assert [(unit.kind, unit.text) for unit in units] == [
        (UnitKind.STEP, "1. Fetch a probe; its certificate is on the sleeve."),
        (UnitKind.STEP, "2. Hang it."),
        (UnitKind.BULLET, "- one"),
        (UnitKind.BULLET, "- two"),
    ]


@pytest.mark.parametrize(
    "code",
    [
        "rimectl probe replace --old KP22 --new KP23",
        "$ make run",
        "def f(x):\n    return x[1]",
        "larderctl db switchover --to lar-db-2   # primary alive\nlarderctl db failover --to lar-db-2",
    ],
)
def test_code_stays_as_it_stands(code):
    (unit,) = split_units(code)
    assert (unit.kind, unit.text) == (UnitKind.CODE, code)


@pytest.mark.parametrize(
    "prose", ["Use the flag --fail to make it fail.", "Call Ann (0555 0199) at once.", "Owner: Femi Aldersgate"]
)
def test_prose_with_signs_is_not_code(prose):
    assert {unit.kind for unit in split_units(prose)} == {UnitKind.SENTENCE}
