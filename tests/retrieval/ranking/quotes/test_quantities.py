"""Which row of a table a number picks."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.ranking.quotes.quantities import Interval, interval, picked, quantities

LIMITS = [
    ["Team lead", "1,000 euros", "none"],
    ["Head of an area", "5,000 euros", "1 year"],
    ["Site manager", "10,000 euros", "1 year"],
    ["Director", "50,000 euros", "3 years"],
    ["Managing director", "250,000 euros", "5 years"],
]
LIMITS_HEADER = ["Role", "Orders up to", "Contracts up to"]
ROOMS = [
    ["0 to +5 °C", "110 minutes"],
    ["-1 to -19 °C", "75 minutes"],
    ["-20 to -24 °C", "50 minutes"],
    ["-25 °C and colder", "40 minutes"],
]
ROOMS_HEADER = ["Room", "Longest stay"]
PRICES = [["2024", "45.00"], ["2025", "50.00"], ["2026", "65.00"]]
DUTY = [["25", "16 June 2025", "Roth"], ["26", "23 June 2025", "Prade"]]
ANSWERS = [["2", "3 days", "1 day"], ["3", "5 days", "2 days"]]
SERIES = [["3.0", "17 March 2025"], ["3.1", "20 November 2025"]]
PAY = [["8", "3", "3000"], ["9", "2", "3100"], ["9", "3", "3300"]]
SEATS = [["A", "1", "20"], ["B", "2", "10"], ["C", "2", "20"]]
APPROVALS = [["up to 1 million euros", "Lead"], ["1 to 5 million euros", "CFO"], ["over 5 million euros", "Board"]]
PREMIUMS = [["up to 150,000", "182", "298"], ["over 150,000 up to 350,000", "291", "487"]]
RATES = [["Young", "up to 5,000"], ["Notice 60", "up to 25,000"], ["Notice 60", "over 25,000"], ["Easy", "over 25,000"]]
NODES = [["3", "1"], ["4", "1"], ["5", "2"]]


@pytest.mark.parametrize(
    ("question", "values"),
    [
        ("Who may sign 20,000 euro?", [20_000.0]),
        ("longer than 1.5 hours or 90 minutes", [1.5, 90.0]),
        ("at \u221225 °C", [-25.0]),
        ("RIME-4107 and v2 and T6", []),
        ("£4.1 million, 20k or 3 mn euros in 5 minutes, 4K", [4_100_000.0, 20_000.0, 3_000_000.0, 5.0, 4.0]),
        ("no number", []),
    ],
)
def test_numbers_of_a_question_are_found_and_codes_are_none(question, values):
    assert [quantity.value for quantity in quantities(question, "english")] == values


@pytest.mark.parametrize(
    ("cell", "header", "low", "high"),
    [
        ("50,000 euros", "Orders up to", -math.inf, 50_000),
        ("over 5 years", "", 5, math.inf),
        ("5 or more", "", 5, math.inf),
        ("\u2265 10 kg", "", 10, math.inf),
        ("-25 °C and colder", "Room", -math.inf, -25),
        ("0 to +5 °C", "", 0, 5),
        ("1-3", "Days", 1, 3),
        ("between 2 and 4", "", 2, 4),
        ("99.0 % to under 99.5 %", "", 99.0, 99.5),
        ("3 up to 5 kg", "", 3, 5),
        ("8484", "Port", 8484, 8484),
    ],
)
def test_a_cell_stands_for_an_interval_bounded_by_its_words_or_by_its_header(cell, header, low, high):
    found = interval(cell, header, "english")
    assert found is not None
    assert (found.low, found.high) == (low, high)


@pytest.mark.parametrize(
    "cell", ["none", "", "2026-11-12", "12.11.2026", "ended 12 November 2026", "Nov. 2026", "from 3 May"]
)
def test_a_cell_without_a_number_or_with_a_date_is_no_interval(cell):
    assert interval(cell, "", "english") is None


@pytest.mark.parametrize(
    ("question", "rows", "header", "row"),
    [
        ("Who may sign 20,000 euro?", LIMITS, LIMITS_HEADER, 3),
        ("who signs 5000", LIMITS, LIMITS_HEADER, 1),
        ("Who may sign a contract for 4 years?", LIMITS, LIMITS_HEADER, 4),
        ("Who may sign 300,000 euros?", LIMITS, LIMITS_HEADER, None),
        ("how long may I work at -22 °C", ROOMS, ROOMS_HEADER, 2),
        ("how long at minus 30, that is -30 degrees", ROOMS, ROOMS_HEADER, 3),
        ("price in 2025", PRICES, ["Year", "Euros"], 1),
        ("price in 2019", PRICES, ["Year", "Euros"], None),
        ("we run 4 cluster manager nodes", NODES, ["Cluster manager nodes", "Failures"], 1),
        ("Who is on call in week 25?", DUTY, ["Week", "From", "Manager"], 0),
        ("severity 3, Basic plan", ANSWERS, ["Severity", "Basic", "Premium"], 1),
        ("Until when is 3.1 supported?", SERIES, ["Series", "Supported until"], None),
        ("premium in zone 3 for a sum of 300,000", PREMIUMS, ["Sum", "Zone 1", "Zone 3"], 1),
        ("interest of Notice 60 on 40,000", RATES, ["Account", "Balance"], 2),
        ("May the managing director sign 20,000 euros?", LIMITS, LIMITS_HEADER, 4),
        ("Who may sign 0.2 million euros?", LIMITS, LIMITS_HEADER, 4),
        ("Which courses are in week 3?", [["A", "3"], ["B", "3"], ["C", "4"]], ["Course", "Week"], None),
        ("pay for step 3 in grade 9", PAY, ["Grade", "Step", "Pay"], 2),
        ("Which room on floor 2 has 20 seats?", SEATS, ["Room", "Floor", "Seats"], 2),
        ("Who approves 500,000 euros?", APPROVALS, ["Amount", "Who"], 0),
        ("Who approves 1,200,000 euros?", APPROVALS, ["Amount", "Who"], 1),
        ("vacation after 5 years", [["after 2 years", "25"], ["after 5 years", "28"]], ["Service", "Days"], 1),
        ("how long for 20 people", ROOMS, ROOMS_HEADER, None),
        ("no number", LIMITS, LIMITS_HEADER, None),
    ],
)
def test_the_narrowest_interval_with_the_number_picks_its_row(question, rows, header, row):
    assert picked(rows, header, quantities(question, "english"), "english") == row


def test_numbers_are_read_as_the_language_writes_them():
    rows = [["bis 1.000 €", "Team"], ["bis 10.000,00 €", "Abteilung"], ["über 10.000 €", "Leitung"]]
    asked = [quantities(f"Wer unterschreibt {amount} Euro?", "german") for amount in ("800", "1.250,50", "10.500")]
    assert [picked(rows, ["Betrag", "Wer"], it, "german") for it in asked] == [0, 1, 2]


def test_a_column_of_equal_cells_picks_nothing():
    assert (
        picked([["2 years"], ["2 years"]], ["Contracts"], quantities("a contract of 2 years", "english"), "english")
        is None
    )


def test_a_column_with_a_number_in_few_rows_picks_nothing():
    rows = [
        ["Name", "Coke"],
        ["State", "DE"],
        ["Auditor", "Young"],
        ["Public", "no"],
        ["Year", "2024"],
        ["Zip", "30313"],
    ]
    assert picked(rows, ["Item", "Value"], quantities("Who audited 2024?", "english"), "english") is None


@given(st.floats(-1e6, 1e6), st.floats(-1e6, 1e6), st.floats(-1e6, 1e6))
def test_an_interval_has_its_ends_and_nothing_outside(one, other, value):
    found = Interval(min(one, other), max(one, other), frozenset())
    assert one in found
    assert other in found
    assert (value in found) == (min(one, other) <= value <= max(one, other))


@given(st.text(max_size=60), st.text(max_size=30), st.sampled_from(["english", "german"]))
def test_any_text_can_be_read(text, header, language):
    found = interval(text, header, language)
    assert found is None or found.low <= found.high
    quantities(text, language)
