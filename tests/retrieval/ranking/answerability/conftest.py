"""Searches made by hand, for the signals' tests."""

import uuid
from datetime import UTC, datetime

import pytest

from retrieval.engine.types import ChunkFacts, ChunkId, Hit, Passage, QueryTerms, ScoreType, Term, TermMatch
from retrieval.ranking.answerability.signals import Evidence

NOW = datetime(2026, 6, 1, tzinfo=UTC)
#: The question of most tests. Idf 4 + 3 + 2 + 1 = 10; "rollo" stands nowhere in scope.
QUESTION = "In 911 what did Rollo not swear to Charles?"
TERMS = (Term("rollo", 0, 4.0), Term("911", 1, 3.0), Term("charl", 2, 2.0), Term("swear", 5, 1.0))


def chunk_id(number):
    return ChunkId(uuid.UUID(int=number), 0)


@pytest.fixture
def passage():
    """Return a function that makes passage `number` of a text and the lexemes that full text found in it."""

    def make(number, text, *lexemes, title="Untitled", cosine=0.5, share=0.1, **signals):
        facts = ChunkFacts(1, title, "", "text", (), text, 10, "", None, None, NOW, None)
        idf = {term.lexeme: term.idf for term in TERMS}
        matches = tuple(TermMatch(lexeme, idf[lexeme], share, "C") for lexeme in lexemes)
        kind = ScoreType.LOGIT if "rerank" in signals else ScoreType.BLEND
        known = {"cosine": cosine, **signals}
        return Passage(number, Hit(chunk_id(number), 0.5, kind, signals=known, matches=matches, facts=facts), "", 10)

    return make


@pytest.fixture
def leg():
    """Return a function that makes a leg's ranking of numbered chunks; scores fall by 0.01 from 0.9 unless given."""

    def make(*numbers, scores=None):
        scores = scores or [0.9 - 0.01 * place for place in range(len(numbers))]
        return tuple(Hit(chunk_id(it), score, ScoreType.COSINE) for it, score in zip(numbers, scores, strict=True))

    return make


@pytest.fixture
def evidence():
    """Return a function that gathers evidence for the question."""

    def make(*passages, question=QUESTION, terms=TERMS, **rankings):
        known = QueryTerms(terms, corpus_size=100)
        return Evidence(question, known, rankings, passages, lambda _: "english")

    return make
