"""The quality gates: the sample company's questions, asked by those who may ask them, on the real model."""

from dataclasses import replace

import ir_measures
import numpy as np
import pytest
from ir_measures import R, nDCG

from retrieval.answers.extractive import ASSERTED
from retrieval.answers.rewrite import Said, stand_alone
from retrieval.engine.deadline import Deadline
from retrieval.evaluation.answers import is_right
from retrieval.evaluation.calibration import auroc
from retrieval.index.sentences import SentenceVectors
from retrieval.llm.prompt import REFUSAL
from retrieval.ranking.answerability.verdict import AnswerabilityConfig
from retrieval.stages.answerability import EstimateAnswerability
from tests.unhurried import MAX_MS

# Without the mark no test database is made, and the module's fixture would fill the installation's own.
pytestmark = pytest.mark.django_db

#: What was measured when the gate was set, less 0.02.
_FLOORS = {nDCG @ 10: 0.84, R @ 50: 0.98}
#: The same less 0.04: only 12 questions have no answer, and all are unlike those of the fit.
_MIN_AUROC = 0.74
#: Share of the questions whose confidence falls when the answering passages are taken away, less 0.04.
_MIN_LOWERED = 0.7
#: Of 50 follow-up questions 48 found their document within five when the gate was set, and 31 as they were asked.
_MIN_FOUND = 47
_MAX_FOUND_ALONE = 33
#: Of the 46 with a known answer 37 got it, and one of all got the answer before again. "Who owns it?" (the service on
#: a port) is refused: its confidence lies below the bound of a hedge, since no document contains "listen".
_MIN_ANSWERED = 37
_MAX_REPEATED = 3
_MIN_EXAMPLES = 6  #: For each user, one in the README included.


def test_the_samples_rank_as_well_as_when_the_gate_was_set_and_leak_nothing(asked):
    run, qrels = [], []
    for it in asked:
        name, question = it.question["id"], it.question
        assert not set(it.documents) & set(question.get("forbidden", [])), name
        qrels += [
            ir_measures.Qrel(name, expected["path"], expected["grade"]) for expected in question.get("expected", [])
        ]
        run += [ir_measures.ScoredDoc(name, document, -rank) for rank, document in enumerate(it.documents)]
    figures = ir_measures.calc_aggregate(list(_FLOORS), qrels, run)
    assert all(figures[measure] >= floor for measure, floor in _FLOORS.items()), figures


def test_confidence_tells_what_the_samples_answer_from_what_they_do_not(asked):
    answerable = np.array([it.question.get("answerable", True) for it in asked])
    confidences = np.array([it.outcome.state.answerability.confidence for it in asked])
    assert (answerable.sum(), (~answerable).sum()) == (72, 12)
    area = auroc(confidences, answerable)
    assert area >= _MIN_AUROC, area


def test_confidence_falls_when_the_answering_passages_are_taken_away(asked, real_encoder):
    stage = EstimateAnswerability(AnswerabilityConfig(), "english", SentenceVectors(real_encoder))
    pairs = np.array(
        [
            (
                it.outcome.state.answerability.confidence,
                stage(without(it.outcome.state, it.answering)).answerability.confidence,
            )
            for it in asked
            if it.answering
        ]
    )
    assert len(pairs) > 60
    lowered = np.mean(pairs[:, 1] < pairs[:, 0])
    assert lowered >= _MIN_LOWERED, lowered
    asserted = (pairs >= AnswerabilityConfig().answerable_from).mean(axis=0)
    assert asserted[1] < 0.5 * asserted[0], asserted


def test_follow_ups_find_their_document_when_they_are_made_to_stand_alone(follow_ups):
    assert sum(it.expected in it.alone[:5] for it in follow_ups) <= _MAX_FOUND_ALONE
    missed = [it.rewriting.searched for it in follow_ups if it.expected not in it.rewritten[:5]]
    assert len(follow_ups) - len(missed) >= _MIN_FOUND, missed


def test_follow_ups_are_answered_and_do_not_repeat_the_answer_before(follow_ups):
    answered = [it for it in follow_ups if it.requirements]
    wrong = [it.rewriting.searched for it in answered if not is_right(it.answer, it.requirements)]
    assert len(answered) - len(wrong) >= _MIN_ANSWERED, wrong
    same = [it.rewriting.searched for it in follow_ups if it.answer.split("\n\n")[1:] == it.before.split("\n\n")[1:]]
    assert len(same) <= _MAX_REPEATED, same


def test_every_example_is_answered_rightly_for_whom_it_is_shown_to(shown):
    assert len({(it.username, it.text) for it in shown}) > 4 * _MIN_EXAMPLES
    told = [it for it in shown if it.requirements is not None]
    assert [it for it in told if not it.answer.startswith(ASSERTED)] == []
    assert [it for it in told if not is_right(it.first_quote, it.requirements)] == []
    refused = [it for it in shown if it.requirements is None]
    assert refused
    assert [it for it in refused if not it.answer.startswith(REFUSAL)] == []


def test_a_misspelled_question_is_answered_like_the_question_that_is_meant(misspelled):
    assert len(misspelled) == 6
    assert [[it.meant for it in found.outcome.state.terms.corrections] for _, found in misspelled] == [
        [meant] for meant, _ in misspelled
    ]
    answers = [(found.answer, found.question["answers"]) for _, found in misspelled]
    assert [
        answer for answer, wanted in answers if not answer.startswith(ASSERTED) or not is_right(answer, wanted)
    ] == []


def test_questions_that_are_spelled_rightly_are_searched_for_as_they_are(asked):
    assert [it.outcome.state.terms.corrections for it in asked if it.outcome.state.terms.corrections] == []


def test_questions_that_stand_alone_are_searched_for_as_they_are_after_any_other(asked):
    for before, it in zip([asked[-1], *asked[:-1]], asked, strict=True):
        titles = tuple(passage.hit.chunk.title for passage in before.outcome.passages[:3])
        assert stand_alone(it.question["text"], [Said(before.question["text"], titles)]).searched == it.question["text"]


def test_the_only_documents_that_contradict_each_other_are_the_minutes_about_tunnel_2(asked):
    assert {it.question["id"] for it in asked if it.outcome.state.answerability.reason == "conflicting"} == {"tunnel-2"}


def test_what_is_newer_answers_and_the_other_follows_with_its_source(asked):
    answers = {
        it.question["id"]: it.answer
        for it in asked
        if it.question["id"] in {"tunnel-2", "leave-days", "hotel-limit", "km-rate-2024"}
    }
    for name, first, source, other in (
        (
            "tunnel-2",
            "26 November",
            "Another document says otherwise (Operations weekly, 5 November 2026",
            "19 November",
        ),
        ("leave-days", "27 days", "An older version says otherwise (Leave policy, working copy", "has 25 days"),
        ("hotel-limit", "145 euros", "An older version says otherwise (Travel rules", "120 euros"),
    ):
        assert answers[name].index(first) < answers[name].index(source) < answers[name].index(other)
    assert "0.38 euros" in answers["km-rate-2024"]
    assert "0.44 euros" not in answers["km-rate-2024"]


def without(state, numbers):
    """Return a finished search as it would have been without some of its passages."""
    gone = {passage.hit.chunk_id for passage in state.passages if passage.number in numbers}
    return replace(
        state,
        deadline=Deadline.after(MAX_MS / 1000),
        passages=tuple(passage for passage in state.passages if passage.number not in numbers),
        rankings={
            leg: tuple(hit for hit in ranking if hit.chunk_id not in gone) for leg, ranking in state.rankings.items()
        },
    )
