"""Whether cited passages support what is stated."""

import math
from dataclasses import replace

import numpy as np
import pytest

from retrieval.answers.claims import Claim, claims
from retrieval.answers.events import Done, Outcome, Unsupported
from retrieval.answers.extractive import extract_answer
from retrieval.answers.faithfulness import ENOUGH_COSINE, Checker, supported_share, unsupported
from retrieval.engine.types import QueryTerms, Term
from retrieval.engine.words import stemmer
from retrieval.llm.citations import find_citations
from retrieval.llm.types import Task, TokenUsage
from tests.passages import judged, made

STEM = stemmer("english")
PASSAGES = (
    made(1, "Draining the queue takes four minutes. Error Q-4711 means that a worker is stuck. Call after 9 hours."),
    made(2, "The rollback in March cost 48,200 crowns. Greta Mulvaney signs for it.", "Costs", ("Harrowmouth site",)),
)


KEYS = (
    made(
        1,
        "Press Ctrl+Shift+U to turn the selected text into capitals. Press Esc to leave the editor.\n\n"
        "Save with `notes save --all /etc/notes.yaml`.\n\n```\nnotes sync\nnotes push --force\n```",
        "Editing",
    ),
)


def marked(text, question=""):
    checker = Checker.of(KEYS, stem=STEM, question=question)
    found = unsupported(text, find_citations(text, 9), checker)
    return [(text[it.start : it.end], it.reason, it.explanation) for it in found]


@pytest.mark.parametrize(
    "text",
    [
        "The selected text turns into capitals with Shift+Ctrl+U [1].",
        "Press **Ctrl** + **Shift** + `U` to turn the selected text into capitals.",
        "Press Esc to leave the editor [1].",
        "Save the notes with `notes save --all` [1].",
        "Save with `notes save --all /etc/notes.yaml` [1].",
        "It saves to /etc/notes.yaml [1].",
        "Sync the notes [1]:\n\n```bash\n# First the notes.\n$ notes sync\n```",
    ],
)
def test_keys_and_code_of_the_passages_stand(text):
    assert marked(text) == []


@pytest.mark.parametrize(
    ("text", "reason", "missing"),
    [
        ("The selected text turns into capitals by pressing Ctrl+U.", "uncited", "Ctrl+U"),
        ("The selected text turns into capitals by pressing Ctrl+U [1].", "code", "Ctrl+U"),
        ("Press U to turn the selected text into capitals [1].", "code", "U"),
        ("Press Enter to leave the editor [1].", "code", "Enter"),
        ("Run `notes save --everything` to save [1].", "code", "notes save --everything"),
        ("Save it all with the option --everything [1].", "code", "--everything"),
        ("It saves to /etc/notes.yml [1].", "code", "/etc/notes.yml"),
    ],
)
def test_keys_and_code_that_no_passage_contains_are_always_marked(text, reason, missing):
    ((sentence, found, explanation),) = marked(text)
    assert (sentence, found) == (text, reason)
    assert f"\u201c{missing}\u201d" in explanation


def test_lines_of_code_that_no_passage_contains_are_marked():
    text = "Push the notes [1]:\n\n```\nnotes sync\nnotes push --quick\nrm -rf /\n```"
    ((part, reason, explanation),) = marked(text)
    assert (part, reason) == ("notes push --quick\nrm -rf /", "code")
    assert "\u201crm -rf /\u201d" in explanation


def test_keys_of_the_question_may_be_repeated():
    text = "Ctrl+U does not turn the selected text into capitals [1]."
    assert [reason for _, reason, _ in marked(text)] == ["code"]
    assert marked(text, question="Does Ctrl+U turn text into capitals?") == []


def matches(text, encode=None, numbers=(), question=""):
    checker = Checker.of(PASSAGES, stem=STEM, question=question)
    (claim,) = claims(text, ())
    return checker.match(replace(claim, numbers=numbers), encode=encode)


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("Draining the queue takes four minutes.", (1,)),
        ("Four minutes.", (1,)),
        ("In March the rollback cost 48,200 crowns.", (2,)),
        ("Error Q-4711 means a stuck worker, and Greta Mulvaney signs for the rollback.", (1, 2)),
        ("Draining the queue takes five minutes.", ()),
        # Each passage says a part of it, and none that the rollback takes four minutes.
        ("The rollback in March takes four minutes.", ()),
        ("Penguins prefer colder weather than flamingos.", ()),
        ("Yes, it does.", ()),
    ],
)
def test_a_sentence_is_matched_to_the_passages_that_support_it(text, numbers):
    assert matches(text) == numbers


def test_a_match_needs_the_words_of_the_question_too():
    # The words that the question gives select the passage: without them the second would support it as well.
    assert matches("The queue drains.", question="Does the queue drain?") == (1,)


def test_between_two_passages_the_one_that_a_neighbor_cites_is_preferred():
    twice = (PASSAGES[0], made(2, PASSAGES[0].hit.chunk.text))
    (claim,) = claims("Draining the queue takes four minutes.", ())
    checker = Checker.of(twice, stem=STEM)
    assert checker.match(claim) == (1,)
    assert checker.match(replace(claim, numbers=(2,))) == (2,)


@pytest.mark.parametrize(("cosine", "numbers"), [(ENOUGH_COSINE + 0.01, (1,)), (ENOUGH_COSINE - 0.01, ())])
def test_similarity_decides_a_doubtful_match(cosine, numbers):
    assert matches("Draining the wooden queue hurts.", encode=near(cosine)) == numbers


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
    task = Task(question="What did the rollback cost?", passages=PASSAGES, terms=terms, answerability=judged())
    answer = extract_answer(task)
    opening, _, quotes = answer.text.partition("\n\n")
    assert opening == "Quoted from your documents:"
    assert quotes
    assert reasons(quotes) == []


@pytest.mark.parametrize(
    ("text", "marked", "outcome", "share"),
    [
        ("It takes 4 weeks [1]. It is paid [1].", (), "asserted", 1.0),
        ("It takes 4 weeks [1]. It is paid [1].", (0,), "asserted", 0.5),
        ("It takes 4 weeks [1].\n\n```\nrm all\n```", (27,), "asserted", 0.5),
        ("I found nothing.", (), "refused", None),
        ("# A heading", (), "asserted", None),
    ],
)
def test_the_share_of_supported_sentences(text, marked, outcome, share):
    done = Done(
        text=text,
        citations=(),
        usage=TokenUsage(1, 1),
        provider="model",
        extractive=False,
        outcome=Outcome(outcome),
        unsupported=tuple(Unsupported(start, start + 5, "number", "") for start in marked),
    )
    assert supported_share(done) == share
    assert supported_share(replace(done, extractive=True)) is None
