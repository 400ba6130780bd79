"""Compound words."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.text.compounds import has_compounds, joined, parts


@pytest.mark.parametrize(
    ("compound", "language", "pair"),
    [
        ("urlaubstag", "german", ("urlaub", "tag")),
        ("kaltemaschin", "german", ("kalt", "maschin")),
        ("uberstundenzuschlag", "german", ("uberstund", "zuschlag")),
        ("vakantiedag", "dutch", ("vakanti", "dag")),
        ("semesterdag", "swedish", ("semester", "dag")),
    ],
)
def test_a_compound_has_its_parts_and_they_join_to_it(compound, language, pair):
    assert pair in set(parts(compound, language))
    assert compound in set(joined(*pair, language)) & set(joined(*reversed(pair), language))


@pytest.mark.parametrize("lexeme", ["tag", "rime-4107", "x" * 500, "38.5"])
def test_short_words_codes_and_data_have_no_parts(lexeme):
    assert list(parts(lexeme, "german")) == []


def test_a_language_without_compounds_has_none():
    assert not has_compounds("french")
    assert list(parts("urlaubstag", "french")) == list(joined("urlaub", "tag", "french")) == []


@given(st.text("abcehnrsät", max_size=20))
def test_parts_are_of_the_word(lexeme):
    assert all(lexeme.startswith(head) and lexeme.endswith(tail) for head, tail in parts(lexeme, "german"))
