"""The names in a question."""

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.graph.question import KnownName, misspelled_in, named_in, question_keys, within_one_letter, without

ONE, TWO, THREE = (UUID(int=number) for number in (1, 2, 3))
STEMS = ("mother", "guy", "tuscani", "film", "titan")


def known(*names):
    return [KnownName(document, text, 1.0) for document, text in names]


def named(question, *names, scores=None, stems=STEMS):
    return [(it.document_id, it.name) for it in named_in(question, known(*names), scores=scores or {}, stems=stems)]


def test_every_run_of_words_may_be_a_name():
    assert question_keys("Who is Guy?") == ["who", "who is", "who is guy", "is", "is guy", "guy"]


def test_the_longest_name_counts():
    names = [(ONE, "Guy"), (TWO, "Guy of Tuscany")]
    assert named("Who is the mother of Guy of Tuscany?", *names) == [(TWO, "Guy of Tuscany")]


def marks(question, *names):
    return {it.name: it.is_marked for it in named_in(question, known(*names), scores={}, stems=())}


def test_a_single_word_is_capitalised_unless_nothing_is():
    assert named("who is the mother of guy?", (ONE, "Guy")) == [(ONE, "guy")]
    assert named("Is the mother of guy from Rome?", (ONE, "Guy")) == []
    assert named("Is the mother of guy of tuscany from Rome?", (ONE, "Guy of Tuscany")) == [(ONE, "guy of tuscany")]


def test_in_small_letters_a_name_has_several_search_terms_unless_nothing_is_capitalised():
    assert named("Where is the mother of Guy from?", (ONE, "The Mother")) == []
    assert named("where is the mother of guy from?", (ONE, "The Mother")) == [(ONE, "the mother")]


def test_a_capitalised_name_comes_before_a_longer_one_in_small_letters():
    names = [(ONE, "mother of Guy"), (TWO, "Guy"), (THREE, "gantry protocol codes")]
    stems = (*STEMS, "gantri", "protocol", "code")
    found = named("Has the mother of Guy read gantry protocol codes?", *names, stems=stems)
    assert found == [(TWO, "Guy"), (THREE, "gantry protocol codes")]


@pytest.mark.parametrize(
    ("question", "name", "is_marked"),
    [
        ("Who is the mother of Guy?", "Guy", True),
        ("Guy of Tuscany was whose son?", "Guy of Tuscany", True),
        # The first word is capitalised anyway.
        ("Guy was whose son?", "Guy", False),
        ("Libraries in Sweden", "Libraries", False),
        ("who is the mother of guy?", "Guy", False),
        ("Is the mother of guy of tuscany from Rome?", "Guy of Tuscany", False),
        # Capitals mean nothing where all is capitals, in the question or in the name.
        ("THE USERS OF LIBRARIES", "Libraries", False),
        ("How are Libraries used in Sweden?", "LIBRARIES", False),
        # An identifier is a name in any case.
        ("what does scope_for return", "scope_for", True),
        ("WHAT IS E-4711", "E-4711", True),
        ("東京 の 歴史", "歴史", True),
    ],
)
def test_a_name_is_marked_by_a_capital_that_means_something(question, name, is_marked):
    assert set(marks(question, (ONE, name)).values()) == {is_marked}


def test_a_misspelled_name_is_marked_in_the_same_way():
    (one,) = misspelled_in("Where was Etqn Boritzre born?", [(ONE, ["Etan Boritzer"])], stems=STEMS)
    (other,) = misspelled_in("where was etqn boritzre born?", [(ONE, ["Etan Boritzer"])], stems=STEMS)
    assert (one.is_marked, other.is_marked) == (True, False)


def test_of_several_documents_with_one_name_the_best_found_counts():
    names = [(ONE, "Guy"), (TWO, "Guy"), (THREE, "Guy")]
    assert named("The mother of Guy?", *names, scores={TWO: 0.4, THREE: 0.6}) == [(THREE, "Guy")]
    assert named("The mother of Guy?", *names) == [(ONE, "Guy")]


def test_a_stop_word_that_is_a_title_is_not_named_by_every_question():
    assert named("Who is the mother of Guy?", (ONE, "Who"), (TWO, "Guy")) == [(TWO, "Guy")]
    assert named("Titanic is a film by whom?", (ONE, "Titanic")) == [(ONE, "Titanic")]


def misspelled(question, *ranked):
    return [(it.document_id, it.name) for it in misspelled_in(question, ranked, stems=STEMS)]


def test_a_name_with_a_wrong_letter_in_each_word_is_known_again():
    ranked = [(ONE, ["Etan Boritzer"]), (TWO, ["Ethan Frome"])]
    assert misspelled("Where was Etqn Boritzre born?", *ranked) == [(ONE, "Etqn Boritzre")]


def test_the_longer_name_then_the_better_document_is_known_again():
    ranked = [(ONE, ["Guyana"]), (TWO, ["Guyana House"]), (THREE, ["Guyana House"])]
    assert misspelled("Who built the Guyaan House?", *ranked) == [(TWO, "Guyaan House")]


def test_a_short_word_is_never_repaired():
    assert misspelled("Who is Gyu?", (ONE, ["Guy"])) == []


@pytest.mark.parametrize(
    ("one", "other"), [("rome", "roma"), ("rome", "romee"), ("rome", "rme"), ("rome", "orme"), ("rome", "rome")]
)
def test_one_letter(one, other):
    assert within_one_letter(one, other)
    assert within_one_letter(other, one)


@pytest.mark.parametrize(("one", "other"), [("rome", "remo"), ("cat", "car"), ("rome", "romaa"), ("", "a")])
def test_more_than_one_letter(one, other):
    assert not within_one_letter(one, other)


@given(st.text(alphabet="abc", max_size=6), st.text(alphabet="abc", max_size=6))
def test_spelling_is_compared_both_ways(one, other):
    assert within_one_letter(one, other) == within_one_letter(other, one)


def test_what_is_asked_is_the_question_less_its_names():
    question = "Who is the mother of Guy of Tuscany?"
    found = named_in(question, known((ONE, "Guy of Tuscany")), scores={}, stems=STEMS)
    assert without(question, found) == "Who is the mother of ?"


def test_a_sentence_that_begins_with_a_capital_names_nothing_by_one_word_in_small_letters():
    assert named("Transplanted cells cause a relapse", (ONE, "Cells"), stems=("cell",)) == []
    assert named("cells cause a relapse", (ONE, "Cells"), stems=("cell",)) == [(ONE, "cells")]
