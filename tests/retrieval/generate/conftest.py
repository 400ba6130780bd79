"""Passages made by hand."""

import uuid
from datetime import UTC, datetime

import pytest

from retrieval.types import ChunkFacts, ChunkId, Hit, Passage, QueryTerms, ScoreType, Term

NOW = datetime(2026, 6, 1, tzinfo=UTC)


@pytest.fixture
def passage():
    """Return a function that makes passage `number` of a text."""

    def make(number, text, *, title="Leave and absence", headings=()):
        facts = ChunkFacts(1, title, "", "markdown", headings, text, 10, "", None, None, NOW, None)
        hit = Hit(ChunkId(uuid.UUID(int=number), 0), 1 / number, ScoreType.BLEND, facts=facts)
        return Passage(number, hit, f"### [{number}] {title}", 12)

    return make


@pytest.fixture
def terms():
    """Return a function that makes a query's terms, rarest first, of lexemes and their idf."""

    def make(**idfs):
        ordered = sorted(idfs.items(), key=lambda item: -item[1])
        return QueryTerms(tuple(Term(lexeme, 1, idf) for lexeme, idf in ordered), corpus_size=100)

    return make
