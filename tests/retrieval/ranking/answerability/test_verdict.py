"""Verdicts and their reasons."""

from dataclasses import replace

import pytest

from corecube.scope import AccessScope
from retrieval.engine.state import Drop, DropReason
from retrieval.engine.types import QueryTerms, Term, Verdict
from retrieval.ranking.answerability.logistic import LogisticModel, logistic
from retrieval.ranking.answerability.model import AnswerabilityModel
from retrieval.ranking.answerability.verdict import AnswerabilityConfig, judge, nothing, verdict_of
from tests.retrieval.conftest import chunk_id, connection, scope

#: Log-odds 4 (cosine - 0.5): 0.5 is a half.
FIT = LogisticModel(0.0, {"cosine_best": 4.0}, {"cosine_best": 0.5}, {"cosine_best": 1.0})
MODEL = AnswerabilityModel(FIT, FIT)
CONFIG = AnswerabilityConfig(answerable_from=0.6, partial_from=0.3)


@pytest.mark.parametrize(
    ("confidence", "verdict"),
    [
        (1.0, Verdict.ANSWERABLE),
        (0.6, Verdict.ANSWERABLE),
        (0.599, Verdict.PARTIAL),
        (0.3, Verdict.PARTIAL),
        (0.299, Verdict.NOT_ANSWERABLE),
        (0.0, Verdict.NOT_ANSWERABLE),
    ],
)
def test_a_bound_belongs_to_the_better_verdict(confidence, verdict):
    assert verdict_of(confidence, CONFIG, {"cosine_best"}) is verdict


def test_a_confidence_that_reads_no_cosine_has_a_bound_that_refuses_sooner():
    config = AnswerabilityConfig(partial_from=0.1, partial_from_words=0.25)
    for signals, partial in (({"unknown_share", "sentence_cosine"}, 0.1), ({"unknown_share"}, 0.25)):
        assert verdict_of(partial, config, signals) is Verdict.PARTIAL
        assert verdict_of(partial - 0.001, config, signals) is Verdict.NOT_ANSWERABLE


def judged(state, **signals):
    return judge(state, signals, model=MODEL, config=CONFIG)


def test_an_answerable_question_has_no_reason(state):
    found = judged(state, cosine_best=0.9)
    # 4 x 0.4 = 1.6; 1 / (1 + e^-1.6) = 0.832.
    assert found.confidence == pytest.approx(0.832, abs=5e-4)
    assert (found.verdict, found.reason, found.explanation) == (Verdict.ANSWERABLE, "", "")
    assert found.contributions == {"cosine_best": pytest.approx(1.6)}
    assert not found.is_calibrated


def test_the_starting_value_and_the_contributions_give_the_confidence(state):
    fit = replace(FIT, intercept=-0.7)
    found = judge(state, {"cosine_best": 0.9}, model=AnswerabilityModel(fit, fit), config=CONFIG)
    assert found.intercept == -0.7
    assert logistic(found.intercept + sum(found.contributions.values())) == pytest.approx(found.confidence)


@pytest.mark.parametrize(("cosine", "reason"), [(0.9, "conflicting"), (0.5, "conflicting"), (0.25, "weak_match")])
def test_a_contradiction_is_a_reason_unless_nothing_answers(state, cosine, reason):
    signals = {"cosine_best": cosine, "coverage_passage": 0.4}
    found = judge(state, signals, model=MODEL, config=CONFIG, disagreement=lambda: "They differ.")
    assert (found.reason, found.explanation == "They differ.") == (reason, reason == "conflicting")
    assert found.verdict is verdict_of(found.confidence, CONFIG, FIT.weights)


def test_a_weak_match_tells_its_numbers(state):
    found = judged(state, cosine_best=0.25, coverage_passage=0.41, coverage_sentence=0.2)
    assert (found.verdict, found.reason) == (Verdict.NOT_ANSWERABLE, "weak_match")
    assert found.explanation == (
        "Query terms found (by IDF): 41 % in the best passage, 20 % in the best sentence; the best cosine is 0.25."
    )


def test_unknown_words_are_named_when_they_weigh_enough(state):
    terms = QueryTerms((Term("zanzibar", 0, 5.0), Term("rollback", 3, 2.0)), 9)
    asked = replace(state, terms=terms)
    found = judged(asked, cosine_best=0.4, unknown_share=5 / 7)
    assert (found.verdict, found.reason) == (Verdict.PARTIAL, "unknown_terms")
    assert found.explanation == "No document that was searched contains “zanzibar”."
    assert judged(asked, cosine_best=0.4, unknown_share=0.1).reason == "weak_match"


def test_unknown_words_are_named_as_they_were_typed(state):
    asked = replace(state, query=replace(state.query, text="Grandparents and Ponies?"))
    asked = replace(asked, terms=QueryTerms((Term("grandpar", 0, 5.0), Term("poni", 0, 2.0)), 9))
    assert (
        judged(asked, unknown_share=1.0).explanation
        == "No document that was searched contains “Grandparents”, “Ponies”."
    )


def test_unknown_words_are_found_by_the_stems_of_their_language(state):
    asked = replace(state, query=replace(state.query, text="Wer gewann die Fußballweltmeisterschaft?"))
    terms = QueryTerms((Term("fussballweltmeisterschaft", 0, 5.0),), 9, language="german")
    found = judged(replace(asked, terms=terms), unknown_share=1.0)
    assert found.explanation == "No document that was searched contains “Fußballweltmeisterschaft”."


def test_many_unknown_words_are_counted(state):
    terms = QueryTerms(tuple(Term(f"word{n}", 0, 1.0) for n in range(7)), 9)
    found = judged(replace(state, terms=terms), unknown_share=1.0)
    assert found.explanation.endswith("“word4” and 2 more.")


def absent(state, *drops, **changes):
    return nothing(replace(state, drops=drops, **changes), model=MODEL)


def drop(number, reason):
    return Drop(chunk_id(number), reason)


def test_without_a_connection_in_scope_there_is_no_scope(state):
    found = absent(state, scope=AccessScope("charlie", ()))
    assert (found.reason, found.verdict, found.confidence) == ("no_scope", Verdict.NOT_ANSWERABLE, 0.0)


def test_nothing_found_is_said_with_the_size_of_the_scope(state):
    found = absent(state, terms=QueryTerms(corpus_size=12), scope=scope(connection()))
    assert (found.reason, found.explanation) == ("nothing_found", "None of the 12 chunks in scope matched.")


def test_hits_that_were_all_dropped_are_told_by_stage(state):
    floor = [drop(n, DropReason.BELOW_FLOOR) for n in range(3)]
    assert absent(state, *floor).reason == "below_floor"
    both = absent(state, *floor, drop(4, DropReason.QUALITY))
    assert (both.reason, both.explanation) == ("filtered", "All hits were dropped: 3 below floor, 1 quality.")


@pytest.mark.parametrize("reason", [DropReason.ACCESS, DropReason.STALE])
def test_hits_outside_the_scope_are_as_if_never_found(state, reason):
    stopped, bare = absent(state, drop(1, reason)), absent(state)
    assert stopped == bare
