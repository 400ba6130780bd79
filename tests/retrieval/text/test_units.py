"""What can be quoted of a chunk."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.text.units import UnitKind, cells_of, has_header, split_units


@given(st.text(max_size=200) | st.text(alphabet=" ()\n-|$1.A:?", max_size=60))
def test_any_text_can_be_cut(text):
    assert all(unit.text.strip() for unit in split_units(text))


def test_a_hard_wrapped_sentence_becomes_one_line():
    (unit,) = split_units("For more than five days in a row you have to ask at least\nthree weeks ahead.")
    assert unit.text == "For more than five days in a row you have to ask at least three weeks ahead."


def test_steps_within_a_line_are_steps():
    text = 'It is posted. Lost it? 1. Block it in "My card". 2. Pay the fee; wait. 3. Collect it. The old one is void.'
    assert [(unit.kind, unit.text) for unit in split_units(text)] == [
        (UnitKind.SENTENCE, "It is posted."),
        (UnitKind.SENTENCE, "Lost it?"),
        (UnitKind.STEP, '1. Block it in "My card".'),
        (UnitKind.STEP, "2. Pay the fee; wait."),
        (UnitKind.STEP, "3. Collect it."),
        (UnitKind.SENTENCE, "The old one is void."),
    ]
    steps = split_units("Step 1: choose three. Step 2: rank them. Step 3: send the form.")
    assert [unit.kind for unit in steps] == [UnitKind.STEP] * 3


@pytest.mark.parametrize(
    "text", ["It is open (1) mornings, (2) evenings and (3) at night.", "See section 1. 3. is new."]
)
def test_other_numbers_within_a_line_are_no_steps(text):
    assert {unit.kind for unit in split_units(text)} == {UnitKind.SENTENCE}


def test_a_short_line_before_a_capital_ends_where_it_ends():
    assert [unit.text for unit in split_units("Emergencies\nAmber beacon: leave the room. Siren: go.")] == [
        "Emergencies",
        "Amber beacon: leave the room.",
        "Siren: go.",
    ]


@pytest.mark.parametrize("title", ["7. Emergencies", "EMERGENCIES", "7. Emergencies\n"])
def test_a_title_names_the_units_below_it(title):
    first, *below = split_units(f"{title}\nAmber beacon: leave the room. Siren: go.\n\nExits\n\nBy the door.")
    assert (first.text, first.is_title) == (title.strip(), True)
    assert [(unit.text, unit.title, unit.is_title) for unit in below] == [
        ("Amber beacon: leave the room.", title.strip(), False),
        ("Siren: go.", title.strip(), False),
        ("By the door.", "", False),
    ]


@pytest.mark.parametrize("line", ["7. Leave the room.", "WIFI: GUEST", "7. Take " + "a coat " * 12])
def test_other_lines_are_no_titles(line):
    assert not any(unit.is_title for unit in split_units(f"{line}\nLeave it there.\n\nWait."))


def test_a_question_inside_a_block_names_only_the_rest_of_its_block():
    units = split_units(
        "Can I pay by card?\nYes, all are taken.\nIs cash possible?\nNo, only cards.\n\nWe open at nine."
    )
    assert [unit.title for unit in units if not unit.text.endswith("?")] == [
        "Can I pay by card?",
        "Is cash possible?",
        "",
    ]
    first, *others = split_units("Can I pay by card?\n\nYes, all are taken.\n\nAlso by phone.")
    assert [unit.title for unit in (first, *others)] == ["", "Can I pay by card?", "Can I pay by card?"]


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
        "  ()",
        "INSERT INTO fees (name, price) VALUES (1, 2)",
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


def test_lines_of_figures_are_units_under_the_line_with_the_years():
    text = "Consolidated statements\nFiscal Year 2020 2019\nAdvertising expenses 3,958 4,004\nNet loss (12.5) — $ 7"
    assert [(unit.kind, unit.text, unit.header) for unit in split_units(text)][-2:] == [
        (UnitKind.FIGURES, "Advertising expenses 3,958 4,004", "Fiscal Year 2020 2019"),
        (UnitKind.FIGURES, "Net loss (12.5) — $ 7", "Fiscal Year 2020 2019"),
    ]


def test_a_first_row_with_numbers_is_no_header_and_the_header_before_it_stays():
    units = split_units("Goodwill | 2024 | 2023\n\nEurope | 1,087 | 1,153\nAsia | 198 | 209")
    assert [(unit.text, unit.header) for unit in units] == [
        ("Europe | 1,087 | 1,153", "Goodwill | 2024 | 2023"),
        ("Asia | 198 | 209", "Goodwill | 2024 | 2023"),
    ]


def test_the_line_above_the_rows_of_a_table_is_their_label():
    *_, last = split_units("Prices are in euros.\nEurope\nItem | Price\nTea | 3")
    assert (last.text, last.header, last.label) == ("Tea | 3", "Item | Price", "Europe")


def test_a_line_with_a_fact_is_no_heading():
    fact, sentence = split_units("Release date: 2025-11-13\n\nThis release has fixes.")
    assert fact.text == "Release date: 2025-11-13"
    assert sentence.heading == ""


def test_nested_items_know_how_far_they_are_indented():
    assert [unit.indent for unit in split_units("- one\n  - nested\n- two")] == [0, 2, 0]


def test_printed_items_are_nested_by_their_signs_below_one_that_ends_with_a_colon():
    text = "\u2022 hands\n\u2022 stay away with:\n\u2013 fever:\n* high\n\u2013 a cough\n\u2022 phones\n\u2013 loose"
    assert [unit.indent for unit in split_units(text)] == [0, 0, 1, 2, 1, 0, 0]


@pytest.mark.parametrize(
    ("rows", "header"),
    [
        (["| 2.8 | 3.0", "Port | 7070 | 7411", "Runs | 4 | 8"], True),
        (["| 2.8 | 3.0", "Port | 7070 | 7411"], False),
        (["| 2.8 | 3.0", "Port | 7070 | 7411", "| 4 | 8"], False),
        (["| Total | 5 | 6", "A | x | 1 | 2", "B | y | 2 | 3"], False),
        (["| Soltau | D\u00f6beln", "Bus | 7 | 8"], True),
    ],
)
def test_a_row_of_figures_is_a_header_if_it_alone_has_an_empty_corner(rows, header):
    assert has_header(rows) is header
    assert {unit.header for unit in split_units("\n".join(rows))} == {rows[0] if header else ""}


@pytest.mark.parametrize(
    ("row", "cells"),
    [("a | b", ["a", "b"]), ("| b | c", ["", "b", "c"]), ("a | b |", ["a", "b", ""]), ("a |  | c", ["a", "", "c"])],
)
def test_cells_at_the_ends_of_a_row_may_be_empty(row, cells):
    assert cells_of(row) == cells


def test_a_long_row_becomes_the_sentences_of_its_cells_under_its_first_cell():
    text = f"Setting | Description\nblock_expiry | Blocks a login for a time. {'It is a number of seconds. ' * 20}"
    first, *others = split_units(text)
    assert (first.kind, first.text, first.label) == (UnitKind.SENTENCE, "Blocks a login for a time.", "block_expiry")
    assert len(others) == 20


def test_a_long_item_becomes_its_sentences():
    units = split_units(f"- First sentence. {'Another one of some length. ' * 20}\n- second")
    assert [unit.kind for unit in units] == [UnitKind.BULLET, *[UnitKind.SENTENCE] * 20, UnitKind.BULLET]


def test_a_command_with_a_pipe_is_code_and_no_row():
    (unit,) = split_units("curl -sSL https://get.example.com | bash -s stable")
    assert unit.kind is UnitKind.CODE


def test_a_mails_head_is_one_unit_and_its_subject_names_its_text():
    head = "From: Ann Lee; Ben Ray; Carla Mendes; Dora Quist\nCC: Eve Roth\nDate: Mon, 7 Oct 2024"
    units = split_units(f"{head}\nSubject: Order 4711. Please check\n\nAll,\nstop it.")
    assert [(unit.text, unit.title) for unit in units if not unit.is_title] == [
        (" ".join(head.split()), ""),
        ("All, stop it.", "Subject: Order 4711. Please check"),
    ]
    assert not any(unit.is_title for unit in split_units("Room: 7\nSubject: Physics\n\nBring a pen."))


def test_a_version_with_its_date_is_a_heading():
    (unit,) = split_units("4.11.0 (24 June 2025)\n\n- Added: bulk answers.")
    assert (unit.kind, unit.heading) == (UnitKind.BULLET, "4.11.0 (24 June 2025)")


def test_the_rows_of_a_table_of_flags_and_commands_are_rows():
    units = split_units("Flag | Meaning\n-n, --name | The name\n--dry-run | Only shows what would be done")
    assert [unit.text for unit in units] == ["-n, --name | The name", "--dry-run | Only shows what would be done"]
    (bullet,) = split_units("- Use `ls -l | wc -l` to count files")
    assert bullet.kind is UnitKind.BULLET
    _, second = split_units("Command | Meaning\nstop | Stops it\nstart --force | Starts it in any case")
    assert (second.kind, second.header) == (UnitKind.ROW, "Command | Meaning")


def test_a_phone_number_is_no_figures_of_a_table():
    assert {unit.kind for unit in split_units("Front desk 555 0132\nNight porter +44 20 7946 0991")} == {
        UnitKind.SENTENCE
    }


def test_long_code_is_split_before_its_comments():
    lines = [line for number in range(6) for line in (f"# Step {number}", f"run --step {number} {'x' * 80}")]
    units = split_units("\n".join(lines))
    assert {unit.kind for unit in units} == {UnitKind.CODE}
    assert [unit.text.split("\n")[0] for unit in units] == [f"# Step {number}" for number in range(6)]
