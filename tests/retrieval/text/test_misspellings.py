"""Words within one letter of a misspelled word."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.graph.question import within_one_letter
from retrieval.text.misspellings import Near, near_words, plain_words


@pytest.mark.parametrize(
    ("typed", "meant", "near"),
    [
        ("pasword", "password", Near(3, 0)),  # Behind the "s" that is there.
        ("credti", "credit", Near(4, 0)),
        ("skkills", "skills", Near(2, 0)),
        ("libary", "library", Near(3, 1)),
        ("custome", "customer", Near(7, 1)),
        ("emergancy", "emergency", Near(5, 2)),
        ("someithing", "something", Near(4, 2)),
    ],
)
def test_a_slip_is_less_in_doubt_than_another_letter(typed, meant, near):
    assert near_words(typed, "english")[meant] == near


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("ammer", "hammer"), ("damper", "hamper"), ("routers", "router"), ("pas", "pass"), ("paswrd", "password")],
)
def test_the_first_letter_stays_nothing_is_cut_off_and_two_letters_are_too_many(typed, meant):
    assert meant not in near_words(typed, "english")


@pytest.mark.parametrize(("language", "is_near"), [("german", True), ("english", False)])
def test_letters_are_those_of_the_language(language, is_near):
    assert ("kündigung" in near_words("kundigung", language)) == is_near


@given(st.text("abcdeé", min_size=5, max_size=9))
def test_every_near_word_is_one_letter_away(word):
    near = near_words(word, "english")
    assert word not in near
    assert all(within_one_letter(word, it) and it[0] == word[0] and len(it) >= 5 for it in near)


def test_only_words_alone_in_small_letters_may_be_corrected():
    text = (
        'Reset the pasword (for "guests", «members») of Hansen, retry_limit, e-mail, src/config.py, v14beta, mike@home…'
    )
    assert [word[0] for word in plain_words(text)] == ["pasword", "guests", "members"]
