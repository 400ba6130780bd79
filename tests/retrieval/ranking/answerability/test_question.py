"""Names, numbers and denials of a question."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.engine.words import stemmer
from retrieval.ranking.answerability.signals import denial, denials, entities, numbers

STEM = stemmer("english")


def named(question, *known):
    return [set(entity) for entity in entities(question, known=frozenset(known), stem=STEM)]


@pytest.mark.parametrize(
    ("question", "known", "expected"),
    [
        ("Who met Rollo?", ("rollo",), [{"rollo"}]),
        ("Which Presiding Officer decides?", ("presid", "offic", "decid"), [{"presid", "offic"}]),
        ("Rollo met whom?", ("rollo",), []),
        ("NATO met whom?", ("nato",), [{"nato"}]),
        ("Who? Rollo met Ivar.", ("rollo", "ivar"), [{"ivar"}]),
        ('What is "the blue door"?', ("blue", "door"), [{"blue", "door"}]),
        ("When did the Bank of England open?", ("bank", "england", "open"), [{"bank", "england"}]),
        ("Did Rollo, Ivar or I go?", ("rollo", "ivar", "go"), [{"rollo"}, {"ivar"}]),
        ("Who met Rollo and Rollo?", ("rollo",), [{"rollo"}]),
        ("WHO MET ROLLO?", ("rollo", "met"), []),
        ("Wann darf die Lampe ohne PDF ins Werk?", ("lamp", "pdf", "werk"), [{"pdf"}]),
        ("Who met Rollo?", (), []),
    ],
)
def test_names_are_capitalised_inside_a_sentence_or_quoted(question, known, expected):
    assert named(question, *known) == expected


@given(st.text(max_size=200))
def test_any_question_is_read(question):
    known = frozenset(STEM(word.lower()) for word in question.split())
    assert all(entity and entity <= known for entity in entities(question, known=known, stem=STEM))


def test_numbers_are_lexemes_with_a_digit():
    assert numbers(frozenset({"911", "-4107", "gan-0x2f", "rollo", "10th"})) == {"911", "-4107", "gan-0x2f", "10th"}


@pytest.mark.parametrize(
    ("config", "text", "denied"),
    [
        ("english", "It isn't there", True),
        ("english", "Nothing to note", False),
        ("german", "Er kam nicht", True),
        ("french", "Il n'est pas là", True),
        ("spanish", "Nunca llegó", True),
        ("simple", "It is not there", False),
    ],
)
def test_a_denial_is_known_by_its_language(config, text, denied):
    assert denial(text, denials(config)) is denied
