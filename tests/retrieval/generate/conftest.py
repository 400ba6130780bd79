"""Passages made by hand."""

import pytest

from retrieval.engine.types import QueryTerms, Term
from tests.passages import made


@pytest.fixture
def passage():
    """Return a function that makes passage `number` of a text."""
    return made


@pytest.fixture
def terms():
    """Return a function that makes a query's terms, rarest first, of lexemes and their idf."""

    def make(**idfs):
        ordered = sorted(idfs.items(), key=lambda item: -item[1])
        return QueryTerms(tuple(Term(lexeme, 1, idf) for lexeme, idf in ordered), corpus_size=100)

    return make
