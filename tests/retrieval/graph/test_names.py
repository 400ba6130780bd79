"""The names of documents."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.graph.names import QUALITY, NameKind, looks_like_a_name, names_of
from retrieval.graph.spans import key_of


def kinds(*args, **kwargs):
    return {name.text: name.kind for name in names_of(*args, **kwargs)}


def test_a_title_and_what_it_is_without_its_bracket():
    assert kinds("Theodred II (Bishop of Elmham)") == {
        "Theodred II (Bishop of Elmham)": NameKind.TITLE,
        "Theodred II": NameKind.BARE,
    }


def test_short_forms_of_a_name():
    assert kinds("Lambert, Margrave of Tuscany") == {
        "Lambert, Margrave of Tuscany": NameKind.TITLE,
        "Lambert": NameKind.SHORT,
    }
    assert kinds("John Ronald Tolkien")["John Tolkien"] == NameKind.ENDS


def test_the_first_of_a_list_is_no_short_form():
    assert list(kinds("Data, Documentation and Decision Tables")) == ["Data, Documentation and Decision Tables"]
    assert kinds("Peter, Duke of Coimbra and Aveiro")["Peter"] == NameKind.SHORT


@pytest.mark.parametrize("title", ["A Programming Language", "The Art of Storage", "On Complement Division"])
def test_a_title_that_begins_with_no_first_name_is_not_known_by_its_ends(title):
    assert NameKind.ENDS not in kinds(title).values()


def test_the_text_may_begin_with_a_fuller_name():
    found = kinds("Bill Gates", lead="William Henry Gates III (born 1955) is an American businessman.")
    assert found["William Henry Gates III"] == NameKind.LEAD
    assert list(kinds("Bill Gates", lead="The company grew.")) == ["Bill Gates"]
    assert list(kinds("Bill Gates", lead="Steve Ballmer ran it.")) == ["Bill Gates"]


@pytest.mark.parametrize(
    "title",
    [
        "Statins reduce the risk of stroke, not in children",
        "How to roll back a release on staging",
        "A title with some more words than names have",
        "USERS OF LIBRARIES, SURVEYED",
    ],
)
def test_a_sentence_makes_no_short_names(title):
    assert not looks_like_a_name(title)
    assert list(kinds(title, lead="Statins Reduce Risk in trials.")) == [title]


def test_code_is_known_by_its_identifiers_and_pages_by_telling_headings():
    found = kinds("access", headings=("Setup", "Release Captain"), identifiers=("scope_for", "Setup"), aliases=("ACL",))
    assert found == {
        "access": NameKind.TITLE,
        "ACL": NameKind.ALIAS,
        "scope_for": NameKind.IDENTIFIER,
        "Release Captain": NameKind.HEADING,
    }


def test_a_letter_or_a_short_number_is_no_name():
    assert names_of("A") == ()
    assert names_of("12") == ()
    assert kinds("1984") == {"1984": NameKind.TITLE}


@given(st.text(max_size=80), st.text(max_size=200), st.lists(st.text(max_size=30), max_size=5))
def test_each_key_is_there_once_and_the_surest_names_come_first(title, lead, headings):
    found = names_of(title, lead=lead, headings=headings, identifiers=headings)
    assert len({name.key for name in found}) == len(found)
    assert all(key_of(name.text) == name.key for name in found)
    assert [name.quality for name in found] == sorted((QUALITY[name.kind] for name in found), reverse=True)
