"""Words, phrases and keys."""

import re
import unicodedata
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.graph.spans import is_identifier, key_of, number_of, phrases, sentence_around, words_of


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Étan  Boritzer", "etan boritzer"),
        ("St. Maurice\u2019s Abbey", "St Maurice's abbey"),
        ("What is God?", "what is god"),
        ("Lay-abbot", "lay- abbot"),
        ("東京", "東 京"),
        ("\N{FULLWIDTH LATIN CAPITAL LETTER A}b", "ab"),
    ],
)
def test_names_are_compared_without_case_accents_and_punctuation(one, other):
    assert key_of(one) == key_of(other)


def test_different_names_have_different_keys_and_numbers():
    assert key_of("Maurice") != key_of("Maurices")
    assert number_of("maurice") != number_of("maurices")
    assert -(2**63) <= number_of("maurice") < 2**63


@given(st.text(max_size=200))
def test_words_stand_where_they_say(text):
    words = words_of(text)
    assert all(0 <= word.start < word.end <= len(text) for word in words)
    assert all(one.end <= other.start for one, other in pairwise(words))


@given(st.text(st.characters(max_codepoint=0x17F), max_size=200))
def test_a_key_is_its_own_key(text):
    assert key_of(key_of(text)) == key_of(text)


def said(text):
    words = words_of(text)
    return [text[words[first].start : words[last].end] for first, last in phrases(text, words)]


def test_a_phrase_goes_over_little_words_and_initials():
    assert said("later J. R. R. Tolkien and the Duke of York spoke") == ["J. R. R. Tolkien and the Duke of York"]
    assert said("the House of Lords voted") == ["House of Lords"]
    assert said("by Smith, Jones wrote") == ["Smith", "Jones"]
    assert said("Smith wrote Jones") == ["Smith", "Jones"]


def test_a_phrase_ends_with_the_line():
    assert said("Staging\nProduction") == ["Staging", "Production"]


@pytest.mark.parametrize("text", ["scope_for", "HttpRequest", "Q-4711", "retrieval/graph/spans.py", "x86", "a.b.c"])
def test_code_is_told_by_how_it_is_written(text):
    assert is_identifier(text)


@pytest.mark.parametrize("text", ["Rollback", "rolling back", "a", "", "NASA"])
def test_plain_words_are_no_code(text):
    assert not is_identifier(text)


def test_the_sentence_around_a_place():
    text = "It rained. Guy met Dr. No in\nRome. They left."
    start = text.index("Guy")
    assert sentence_around(text, start, start + 3) == "Guy met Dr. No in"
    start = text.index("They")
    assert sentence_around(text, start, start + 4) == "They left."


@given(st.text(max_size=200), st.integers(0, 200), st.integers(1, 20))
def test_a_sentence_holds_its_place(text, start, length):
    start = min(start, len(text))
    said = text[start : start + length]
    if "\n" not in said and not any(sign in said for sign in ".!?\u3002\uff01\uff1f"):
        assert " ".join(said.split()) in sentence_around(text, start, start + len(said))


@given(st.text("aAbB \u00e9\u00c9\u00df\u0130\ufb01\u6771_-.1\u2019\u03a3\u03c2\u0301", max_size=30))
def test_each_word_has_the_form_that_it_has_alone(text):
    def form(word):
        split = unicodedata.normalize("NFKD", word.casefold())
        return unicodedata.normalize("NFC", "".join(sign for sign in split if sign.isalnum() or sign == "_"))

    written = [found for found in re.finditer(r"\u6771|[^\W\u6771]+", text) if form(found[0])]
    expected = [(form(it[0]), it.start(), it.end(), not it[0][0].islower()) for it in written]
    assert words_of(text) == tuple(expected)
