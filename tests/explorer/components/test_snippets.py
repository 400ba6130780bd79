"""Marking the words that match, and choosing the piece to show."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from explorer.components.snippets import Segment, highlight, one_line, snippet
from retrieval.engine.types import TermMatch
from retrieval.engine.words import stemmer

STEM = stemmer("english")
LEXEMES = st.lists(st.sampled_from(["rollback", "stage", "polici", "-4112", "0x2f", "<b>", "a.b/c", "é", "e"]))
TEXTS = st.text(alphabet=st.sampled_from("aeé stagROLLbk.\n<>&\"'/-x0241·"), max_size=400) | st.text(max_size=200)


def marked(segments):
    return [segment.text for segment in segments if segment.matched]


def joined(segments):
    return "".join(segment.text for segment in segments)


def match(lexeme, idf=1.0):
    return TermMatch(lexeme, idf, 0.1, "C")


@pytest.mark.parametrize(
    ("lexeme", "word"),
    [("stage", "Staging"), ("polici", "policies"), ("stop", "stopped"), ("thermomet", "thermometer"), ("2026", "2026")],
)
def test_a_word_is_marked_when_its_stem_is_the_lexeme(lexeme, word):
    assert highlight(f"The {word}.", [lexeme], stem=STEM) == (
        Segment("The "),
        Segment(word, matched=True),
        Segment("."),
    )


def test_a_word_that_only_begins_alike_is_not_marked():
    assert marked(highlight("A ration of rated stagecraft", ["rate", "stage"], stem=STEM)) == ["rated"]


def test_a_number_read_with_a_minus_is_marked_without_it():
    assert marked(highlight("Error RIME-4112 came, not 41123.", ["rime", "-4112"], stem=STEM)) == ["RIME", "4112"]


def test_a_lexeme_with_signs_is_marked_as_it_stands():
    assert marked(highlight("see Deploy/rollback.py or rollback.pyc", ["deploy/rollback.py"], stem=STEM)) == [
        "Deploy/rollback.py"
    ]


@given(TEXTS, LEXEMES)
def test_highlighting_changes_no_character(text, lexemes):
    assert joined(highlight(text, lexemes, stem=STEM)) == text


@given(TEXTS, LEXEMES)
def test_segments_alternate_and_none_is_empty(text, lexemes):
    assert all(segment.text for segment in highlight(text, lexemes, stem=STEM))


@given(TEXTS, LEXEMES, st.integers(min_value=20, max_value=300))
def test_a_snippet_is_a_piece_of_the_text_within_its_length(text, lexemes, characters):
    segments = snippet(text, [match(lexeme) for lexeme in lexemes], stem=STEM, characters=characters)
    piece = re.sub(r"^… | …$", "", joined(segments))
    assert piece in one_line(text)
    assert len(piece) <= characters


def test_a_snippet_shows_the_heaviest_distinct_lexemes():
    text = "Stage stage stage. " + "Nothing here. " * 30 + "The zanzibar rollback is on stage. " + "And more. " * 30
    segments = snippet(text, [match("zanzibar", 5.0), match("rollback", 3.0), match("stage", 0.5)], stem=STEM)
    assert marked(segments) == ["zanzibar", "rollback", "stage"]
    assert joined(segments).startswith("… ")
    assert joined(segments).endswith(" …")


def test_a_snippet_begins_with_a_sentence():
    text = "Word " * 60 + "ends here. The rollback follows. " + "Tail " * 60
    assert "… The rollback follows." in joined(snippet(text, [match("rollback")], stem=STEM))


def test_a_match_at_the_end_is_shown_with_what_stands_before_it():
    text = "One sentence stands here. " * 20 + "At last the rollback."
    shown = joined(snippet(text, [match("rollback")], stem=STEM, characters=100))
    assert shown == "… One sentence stands here. One sentence stands here. At last the rollback."


def test_without_a_match_the_beginning_is_shown():
    assert snippet("Short text.", [], stem=STEM) == (Segment("Short text."),)


def test_paragraphs_are_told_apart_on_one_line():
    assert (
        one_line("Manual readings\n\nAfter 45\nminutes \n \n\nClosing")
        == "Manual readings · After 45 minutes · Closing"
    )


def test_words_are_marked_whose_stem_lost_the_accent_of_their_first_letter():
    pieces = highlight("Der Überstundenzuschlag", ["uberstundenzuschlag"], stem=stemmer("german"))
    assert marked(pieces) == ["Überstundenzuschlag"]
