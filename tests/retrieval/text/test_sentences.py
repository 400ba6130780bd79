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
        ("Is it free? No. It costs.", ["Is it free?", "No.", "It costs."]),
        ("Lost it? 1. Block it. 2. Pay.", ["Lost it?", "1. Block it.", "2. Pay."]),
        ("Ask HR. They know. A hidden gem. See gem. § 3.", ["Ask HR.", "They know.", "A hidden gem.", "See gem. § 3."]),
        ("It lasts 1 hr. Then Hr. Voss goes.", ["It lasts 1 hr.", "Then Hr. Voss goes."]),
        (
            "At most 20. May I go? It ends in May. 3 are left.",
            ["At most 20.", "May I go?", "It ends in May.", "3 are left."],
        ),
        ("P. ej. Madrid. Am 1./2. Mai (bis 3. Juni) frei.", ["P. ej. Madrid.", "Am 1./2. Mai (bis 3. Juni) frei."]),
        ("Bis 31. März. Im Jahr 2026. Mai folgt.", ["Bis 31. März.", "Im Jahr 2026.", "Mai folgt."]),
        ("On Wednesday, Dec. 11 in Redmond. In May. Then.", ["On Wednesday, Dec. 11 in Redmond.", "In May.", "Then."]),
        ("Avda. Juárez, p.ej. Mín. 3 h. Ud. decide.", ["Avda. Juárez, p.ej. Mín. 3 h.", "Ud. decide."]),
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
