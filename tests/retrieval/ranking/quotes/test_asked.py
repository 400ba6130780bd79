"""What a question asks for, and what holds such an answer."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.ranking.quotes.asked import FORMS, Asked, asked, cues, holds


@pytest.mark.parametrize(
    ("question", "language", "kind"),
    [
        ("How many guests may I bring?", "english", Asked.NUMBER),
        ("notice period for contracts", "english", Asked.DURATION),
        ("When is tunnel 2 back?", "english", Asked.DATE),
        ("Who signs it?", "english", Asked.PERSON),
        ("Which types are supported", "english", Asked.LIST),
        ("How do I book time off?", "english", Asked.STEPS),
        ("May I take it?", "english", Asked.PERMISSION),
        ("What does GAN-0x2F mean?", "english", Asked.DEFINITION),
        ("Wie viele Tage Urlaub habe ich?", "german", Asked.NUMBER),
        ("Bis wann?", "german", Asked.DATE),
        ("Qui signe ?", "french", Asked.PERSON),
        ("¿Cuánto tiempo puedo quedarme?", "spanish", Asked.DURATION),
    ],
)
def test_the_words_of_a_question_tell_what_it_asks_for(question, language, kind):
    assert kind in asked(question, language)


@pytest.mark.parametrize(
    ("question", "language"), [("whomever", "english"), ("canteen", "english"), ("Who?", "polish")]
)
def test_parts_of_words_and_unknown_languages_tell_nothing(question, language):
    assert asked(question, language) == frozenset()


@pytest.mark.parametrize(
    ("kind", "text", "held"),
    [
        (Asked.NUMBER, "It costs 12 euros.", True),
        (Asked.NUMBER, "Twenty guests are too many.", True),
        (Asked.NUMBER, "It is free.", False),
        (Asked.DURATION, "After ten minutes.", True),
        (Asked.DURATION, "After 10.", False),
        (Asked.DATE, "On 26 November.", True),
        (Asked.DATE, "2026-11-26", True),
        (Asked.DATE, "At 06:31 they left.", True),
        (Asked.DATE, "They left.", False),
        (Asked.PERSON, "It is Ottilie Brand.", True),
        (Asked.PERSON, "It is the manager.", False),
        (Asked.PERMISSION, "Guests are not allowed.", True),
        (Asked.PERMISSION, "Guests like it.", False),
    ],
)
def test_a_text_holds_the_form_of_an_answer(kind, text, held):
    assert holds(kind, text, "english") is held


@pytest.mark.parametrize(
    ("text", "held"),
    [
        ("Die Kantine öffnet um 11:30 Uhr.", False),
        ("Der Filter wird gewechselt.", False),
        ("Ansprechpartner ist Jörg Brückner.", True),
        ("Frau Schäfer prüft es.", True),
    ],
)
def test_a_noun_with_its_article_is_no_person(text, held):
    assert holds(Asked.PERSON, text, "german") is held


@given(st.text(max_size=80), st.sampled_from(sorted(FORMS)), st.sampled_from(["english", "german", "simple"]))
def test_any_text_can_be_read(text, kind, language):
    assert holds(kind, text, language) in {True, False}
    assert asked(text, language) <= set(Asked)


OTHER_TABLES = {"past", "bounds", "units", "multiples", "relations", "numerals", "months", "statements", "versions"}
OTHER_TABLES.add("references")


def test_cues_are_in_lower_case_and_name_known_kinds():
    tables = {name: table for name, table in cues().items() if name not in OTHER_TABLES}
    assert tables.keys() == {"english", "german", "french", "spanish"}
    for table in tables.values():
        for kinds in table.values():
            assert {Asked(kind) for kind in kinds}
            assert all(phrase == phrase.lower() for phrases in kinds.values() for phrase in phrases)
