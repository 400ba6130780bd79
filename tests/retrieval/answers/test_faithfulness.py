"""Whether cited passages support what is stated."""

import math

import numpy as np
import pytest

from retrieval.answers.claims import Claim
from retrieval.answers.extractive import extract_answer
from retrieval.answers.faithfulness import ENOUGH_COSINE, Checker, unsupported
from retrieval.engine.types import QueryTerms, Term
from retrieval.engine.words import stemmer
from retrieval.llm.citations import find_citations
from retrieval.llm.types import Task
from tests.passages import made

STEM = stemmer("english")
PASSAGES = (
    made(1, "Draining the queue takes four minutes. Error Q-4711 means that a worker is stuck. Call after 9 hours."),
    made(2, "The rollback in March cost 48,200 crowns. Greta Mulvaney signs for it.", "Costs", ("Harrowmouth site",)),
)


def reasons(text, question="", encode=None):
    checker = Checker.of(PASSAGES, stem=STEM, question=question)
    found = unsupported(text, find_citations(text, 9), checker, encode=encode)
    return [(text[it.start : it.end], it.reason) for it in found]


@pytest.mark.parametrize(
    "text",
    [
        "Draining the queue takes four minutes [1].",
        "The queue takes 4 minutes to drain [1].",
        "In March the rollback cost 48200 crowns [2].",
        "Greta Mulvaney signs for the rollback in Harrowmouth [2].",
        "Error Q-4711 means a stuck worker [1], and Greta Mulvaney signs [2].",
        "Yes [1].",
        "Draining the queue takes four minutes.",
    ],
)
def test_what_the_cited_passages_say_stands(text):
    assert reasons(text) == []


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("Draining the queue takes five minutes [1].", "number"),
        # 9 stands in the passage, but nowhere near the draining.
        ("Draining the queue takes 9 minutes [1].", "number"),
        ("The rollback in March cost 48,300 crowns [2].", "number"),
        ("Error Q-4712 means that a worker is stuck [1].", "number"),
        ("In March, Pilar Wennberg signs for the rollback [2].", "name"),
        ("Draining the queue takes four minutes [2].", "number"),
        ("A worker that is stuck means an error [2].", "overlap"),
        ("Penguins prefer colder weather than flamingos [1].", "overlap"),
        ("Penguins prefer colder weather than flamingos.", "uncited"),
    ],
)
def test_what_they_do_not_say_is_marked_with_its_reason(text, reason):
    assert reasons(text) == [(text, reason)]


def test_what_the_question_says_may_be_repeated():
    text = "In 2026 Pilar asked: the queue takes four minutes to drain [1]."
    assert reasons(text, question="How long does it take in 2026, asks Pilar?") == []
    assert reasons(text) == [(text, "number")]


def test_only_the_sentence_that_fails_is_marked():
    text = "Draining takes four minutes [1]. It costs 99 crowns [2]. Greta Mulvaney signs [2]."
    assert reasons(text) == [("It costs 99 crowns [2].", "number")]


def test_the_share_is_that_of_the_words_by_their_idf():
    checker = Checker.of(PASSAGES, stem=STEM)
    support = checker.support(Claim(0, 1, "Draining the wooden queue hurts", (1,)))
    # Of five sentences one holds "drain" and one "queue": ln(1 + 4.5/1.5). None holds the other two: ln(1 + 5.5/0.5).
    rare, absent = math.log(4), math.log(12)
    assert support.share == pytest.approx(2 * rare / (2 * rare + 2 * absent))
    assert checker.support(Claim(0, 1, "It drains", (1,))).share is None


def near(cosine):
    """Return an encoder for which every claim has this cosine to its nearest sentence."""

    def encode(texts):
        half = len(texts) // 2
        return np.array([[1.0, 0.0]] * half + [[cosine, math.sqrt(1 - cosine**2)]] * half)

    return encode


@pytest.mark.parametrize(("cosine", "stands"), [(ENOUGH_COSINE + 0.01, True), (ENOUGH_COSINE - 0.01, False)])
def test_in_between_likeness_decides(cosine, stands):
    # "drain", "queue" of "drain", "queue", "wooden", "hurt": a share of 0.36.
    text = "Draining the wooden queue hurts [1]."
    assert (reasons(text, encode=near(cosine)) == []) is stands
    assert reasons(text) == [(text, "overlap")]


def test_likeness_saves_neither_a_wrong_number_nor_what_shares_too_little():
    wrong, foreign = "Draining the queue takes five minutes [1].", "Penguins prefer colder weather [1]."
    assert [reason for _, reason in reasons(f"{wrong} {foreign}", encode=near(0.99))] == ["number", "overlap"]


def test_without_passages_everything_is_open():
    checker = Checker.of((), stem=STEM)
    assert unsupported("Penguins prefer colder weather.", (), checker)[0].reason == "uncited"


def test_quotations_of_the_extractive_answerer_always_stand():
    terms = QueryTerms((Term("rollback", 1, 4.0), Term("cost", 1, 2.0)))
    answer = extract_answer(Task(question="What did the rollback cost?", passages=PASSAGES, terms=terms), stem=STEM)
    opening, _, quotes = answer.text.partition("\n\n")
    assert opening == "Quoted from your documents:"
    assert quotes
    assert reasons(quotes) == []
