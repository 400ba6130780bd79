"""Finding the query's lexemes in text."""

import pytest

from retrieval.generate.words import TermFinder, stemmer
from retrieval.types import Term


def finder(*lexemes, config="english"):
    return TermFinder(tuple(Term(lexeme, 1, 2.0) for lexeme in lexemes), stemmer(config))


@pytest.mark.parametrize(
    ("lexeme", "text"),
    [
        ("polici", "The policies of the board"),
        ("leav", "Leaving early"),
        ("-4107", "RIME-4107: a probe drifts"),
        ("0x2f", "Gantry reports GAN-0x2F."),
        ("on-cal", "the on-call engineer"),
        ("3.6", "removed in release 3.6"),
        ("café", "the CAFÉ in Malmö"),
    ],
)
def test_a_lexeme_is_found_in_every_form_of_its_word(lexeme, text):
    assert finder(lexeme).found(text) == {lexeme}


@pytest.mark.parametrize(("lexeme", "text"), [("cat", "a category"), ("leav", "cleave"), ("-410", "RIME-4107")])
def test_a_lexeme_is_not_found_inside_another_word(lexeme, text):
    assert finder(lexeme).found(text) == frozenset()


def test_words_stay_as_they_are_where_there_is_no_stemmer():
    assert finder("leaves", config="simple").found("Leaves fall") == {"leaves"}
    assert finder("leav", config="simple").found("Leaves fall") == frozenset()


def test_the_weight_is_the_summed_idf():
    assert finder("a", "b").weight(frozenset({"a", "b", "other"})) == 4.0
