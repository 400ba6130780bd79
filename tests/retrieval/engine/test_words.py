"""Finding the query's lexemes in text."""

import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from retrieval.engine.types import Term
from retrieval.engine.words import TermFinder, stemmer


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


@pytest.mark.parametrize(
    ("config", "word"), [("german", "Öl"), ("german", "Übungen"), ("german", "Ärzte"), ("spanish", "Área")]
)
def test_a_stem_without_the_accent_of_its_word_is_found(config, word):
    lexeme = stemmer(config)(word.lower())
    assert lexeme[0] != word[0].lower(), "the stemmer takes the accent off"
    assert finder(lexeme, config=config).found(f"1 {word}.") == {lexeme}


def test_words_stay_as_they_are_where_there_is_no_stemmer():
    assert finder("leaves", config="simple").found("Leaves fall") == {"leaves"}
    assert finder("leav", config="simple").found("Leaves fall") == frozenset()


def test_the_weight_is_the_summed_idf():
    assert finder("a", "b").weight(frozenset({"a", "b", "other"})) == 4.0


def test_many_threads_stem_at_once():
    stem = stemmer("english")
    words = [f"policies{number}ing" for number in range(500)] + [
        f"{'ab' * (number % 9 + 1)}nesses" for number in range(500)
    ]
    alone = [stem.__wrapped__(word) for word in words]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(8) as threads:
            together = list(threads.map(lambda _: [stem.__wrapped__(word) for word in words], range(8)))
    finally:
        sys.setswitchinterval(interval)
    assert together == [alone] * 8
