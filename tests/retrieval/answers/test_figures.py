"""Numbers and names in a form that can be compared."""

import pytest

from retrieval.answers.faithfulness import names_of, numbers_of, words_of
from retrieval.engine.words import stemmer

STEM = stemmer("english")


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("48,200 crowns, 48.200, 48'200 and 48200", {"48200"}),
        ("3.5 or 3,50 hours", {"3.5"}),
        ("1,234,567.89", {"1234567.89"}),
        ("on 2026-03-05 at 06:00", {"2026", "3", "5", "6", "0"}),
        ("four minutes, Twelve days, 4 and 04", {"4", "12"}),
        ("Q-4711, K5 and 12%", {"4711", "5", "12"}),
        ("one of them", set()),
    ],
)
def test_numbers_are_plain_decimals(text, numbers):
    assert numbers_of(text) == numbers


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Ask Greta Mulvaney's team", {"greta", "mulvaney"}),
        ("The queue drains. Greta leads it.", set()),
        ("Error RIME in K5 and deployCtl", {"rime", "k5", "deployctl"}),
        ("Der Abbau der Warteschlange im Lager dauert nach Angaben der Leitung vier Minuten", set()),
        ("I asked a driver", set()),
    ],
)
def test_names_have_capitals_inside_a_sentence_or_are_marked(text, names):
    assert names_of(text, STEM) == {STEM(name) for name in names}


def test_words_lose_their_capitals_and_possessives():
    assert words_of("Greta's drivers\u2019 STAGING_db") == ("greta", "drivers", "staging", "db")
