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


def test_names_are_capitalised_unless_nothing_is():
    assert named("who is the mother of guy of tuscany?", (ONE, "Guy of Tuscany")) == [(ONE, "guy of tuscany")]
    assert named("Is the mother of guy of tuscany from Rome?", (ONE, "Guy of Tuscany")) == []


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


def test_a_sentence_that_begins_with_a_capital_names_nothing_in_small_letters():
    assert named("Transplanted stem cells cause a relapse", (ONE, "Stem cells"), stems=("stem", "cell")) == []
    assert named("stem cells cause a relapse", (ONE, "Stem cells"), stems=("stem", "cell")) == [(ONE, "stem cells")]
