"""Words within one letter of a misspelled word."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.graph.question import within_one_letter
from retrieval.text.misspellings import near_words, plain_words


@pytest.mark.parametrize(
    ("typed", "meant", "place"),
    [
        ("pasword", "password", 3),  # Behind the "s" that is there.
        ("libary", "library", 3),
        ("credti", "credit", 4),
        ("skkills", "skills", 2),
        ("emergancy", "emergency", None),
        ("someithing", "something", None),
    ],
)
def test_a_slip_has_its_place_and_another_letter_has_none(typed, meant, place):
    assert near_words(typed, "english")[meant] == place


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("ammer", "hammer"), ("damper", "hamper"), ("routers", "router"), ("pas", "pass"), ("paswrd", "password")],
)
def test_the_first_letter_stays_nothing_is_cut_off_and_two_letters_are_too_many(typed, meant):
    assert meant not in near_words(typed, "english")


@pytest.mark.parametrize(("language", "is_near"), [("german", True), ("english", False)])
def test_letters_are_those_of_the_language(language, is_near):
    assert ("kündigung" in near_words("kundigung", language)) == is_near


@given(st.text("abcdeé", min_size=4, max_size=9))
def test_every_near_word_is_one_letter_away(word):
    near = near_words(word, "english")
    assert word not in near
    assert all(within_one_letter(word, it) and it[0] == word[0] and len(it) >= 5 for it in near)


def test_only_words_alone_in_small_letters_may_be_corrected():
    text = 'Reset the pasword (for "guests") of Hansen, retry_limit, e-mail, src/config.py, v14beta or mike@home?'
    assert [word[0] for word in plain_words(text)] == ["pasword", "guests"]
