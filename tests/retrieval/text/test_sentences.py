"""Where sentences end."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.text.sentences import split_sentences


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("One here. Two there! Three?", ["One here.", "Two there!", "Three?"]),
        ("Ask Dr. Wells, e.g. on Monday. Then wait.", ["Ask Dr. Wells, e.g. on Monday.", "Then wait."]),
        ("You earn 2.25 days a month. See No. 4.", ["You earn 2.25 days a month.", "See No. 4."]),
        ("J. Doe signed it. Done.", ["J. Doe signed it.", "Done."]),
        ("Seats max. 5 people. In 10 min. They go.", ["Seats max. 5 people.", "In 10 min.", "They go."]),
        (
            "Karten, z. B. Tages- bzw. Abendkarten. Tel. nur morgens.",
            ["Karten, z. B. Tages- bzw. Abendkarten.", "Tel. nur morgens."],
        ),
        ("In den U.S. The end.", ["In den U.S.", "The end."]),
        ("Is it free? No. It costs.", ["Is it free?", "No.", "It costs."]),
        (
            "Bis 31. März. Am 1. Mai ist frei. Im Jahr 2026. Mai folgt.",
            ["Bis 31. März.", "Am 1. Mai ist frei.", "Im Jahr 2026.", "Mai folgt."],
        ),
        ("On Wednesday, Dec. 11 in Redmond. In May. Then.", ["On Wednesday, Dec. 11 in Redmond.", "In May.", "Then."]),
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
