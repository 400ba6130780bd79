from math import log2

import ir_measures
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ir_measures import AP, RR, Judged, P, R, nDCG

from retrieval.ranking.measures import (
    OBJECTIVES,
    Measures,
    Objective,
    average_precision,
    collection_measures,
    judged,
    mean,
    measure,
    ndcg,
    recall,
    reciprocal_rank,
)

GRADES = {"a": 3, "b": 2, "c": 0, "d": 1, "e": 2}


def test_ndcg_by_hand():
    # Gains of x c b a d: 0, 0, 3, 7, 1 at discounts log2(2..6); the ideal order has gains 7, 3, 3, 1, 0.
    found = 3 / log2(4) + 7 / log2(5) + 1 / log2(6)
    ideal = 7 / log2(2) + 3 / log2(3) + 3 / log2(4) + 1 / log2(5)
    assert ndcg("xcbad", GRADES) == pytest.approx(found / ideal, abs=1e-12)
    assert ndcg("abed", GRADES) == pytest.approx(1)


def test_the_ideal_ends_at_the_cutoff():
    # Two passages that answer and room for one: the first place is all there is to gain.
    assert ndcg(["a"], {"a": 3, "b": 3}, cutoff=1) == 1.0


def test_what_is_missing_from_the_ranking_counts_in_the_ideal():
    assert ndcg(["a"], {"a": 3, "b": 3}) == pytest.approx(7 / (7 + 7 / log2(3)))


def test_the_reciprocal_rank_is_that_of_the_first_with_grade_2():
    assert reciprocal_rank("dxbe", GRADES) == pytest.approx(1 / 3)
    assert reciprocal_rank("xdc", GRADES) == 0.0


def test_recall_counts_grades_from_2_within_the_cutoff():
    assert recall("xad", GRADES) == pytest.approx(1 / 3)
    assert recall("xab", GRADES, cutoff=2) == pytest.approx(1 / 3)


def test_average_precision_by_hand():
    # b is the first found and the second in rank, e the second found and the fourth; a is not found.
    assert average_precision("xbde", GRADES, cutoff=10) == pytest.approx((1 / 2 + 2 / 4) / 3)
    assert average_precision("xbde", GRADES, cutoff=3) == pytest.approx((1 / 2) / 3)
    assert average_precision("xbde", {"d": 1}, cutoff=10) is None


def test_judged_is_a_share_of_what_there_is():
    assert judged("acx", GRADES) == pytest.approx(2 / 3)
    assert judged([*"xxxxxxxxxx", "a"], GRADES) == 0.0


def test_without_anything_to_measure_against_there_is_no_measure():
    assert measure([], {}) == Measures()
    assert measure("ab", {}) == Measures(judged=0.0)
    assert measure("ab", {"a": 0}) == Measures(judged=0.5)
    assert measure("ab", {"a": 1}) == Measures(ndcg=1.0, judged=0.5)


def test_a_passage_that_stands_twice_counts_once():
    assert measure("aab", GRADES) == measure("ab", GRADES)


def test_the_mean_leaves_out_what_has_no_measure_and_rounds_nothing():
    one, other = Measures(ndcg=1 / 3, judged=0.2), Measures(ndcg=2 / 3, recall=0.5)
    assert mean([one, other, Measures()], Measures) == Measures(ndcg=0.5, recall=0.5, judged=0.2)
    assert mean([], Measures) == Measures()


grades = st.dictionaries(st.sampled_from("abcdefghijklmnopqrstuvwxyz"), st.integers(0, 3), min_size=1)
rankings = st.permutations("abcdefghijklmnopqrstuvwxyz").flatmap(
    lambda order: st.integers(1, 20).map(lambda length: order[:length])
)


@given(rankings, grades)
def test_the_measures_agree_with_ir_measures(ranking, said):
    ours = measure(ranking, said)
    run = [ir_measures.ScoredDoc("q", name, float(-rank)) for rank, name in enumerate(ranking)]
    qrels = [ir_measures.Qrel("q", name, grade) for name, grade in said.items()]
    exponential = nDCG(gains={0: 0, 1: 1, 2: 3, 3: 7}) @ 10
    theirs = ir_measures.calc_aggregate([exponential, RR(rel=2), R(rel=2) @ 20, Judged @ 10], qrels, run)
    assert (ours.ndcg or 0.0) == pytest.approx(theirs[exponential])
    assert (ours.reciprocal_rank or 0.0) == pytest.approx(theirs[RR(rel=2)])
    assert (ours.recall or 0.0) == pytest.approx(theirs[R(rel=2) @ 20])
    assert ours.judged == pytest.approx(theirs[Judged @ 10])


@given(rankings, grades, st.integers(1, 20))
def test_objectives_agree_with_ir_measures_at_any_cutoff(ranking, said, cutoff):
    run = [ir_measures.ScoredDoc("q", name, float(-rank)) for rank, name in enumerate(ranking)]
    qrels = [ir_measures.Qrel("q", name, grade) for name, grade in said.items()]
    theirs = {
        "ndcg": nDCG(gains={0: 0, 1: 1, 2: 3, 3: 7}) @ cutoff,
        "reciprocal_rank": RR(rel=2) @ cutoff,
        "recall": R(rel=2) @ cutoff,
        "precision": P(rel=2) @ cutoff,
        "average_precision": AP(rel=2) @ cutoff,
    }
    assert theirs.keys() == OBJECTIVES.keys()
    found = ir_measures.calc_aggregate(theirs.values(), qrels, run)
    for name, it in theirs.items():
        assert (Objective(name, cutoff).value(ranking, said) or 0.0) == pytest.approx(found[it], abs=1e-9)


runs = st.dictionaries(st.sampled_from(["q1", "q2", "q3", "unjudged"]), rankings)
qrels_given = st.dictionaries(st.sampled_from(["q1", "q2", "q3"]), grades, min_size=1)


@given(runs, qrels_given)
def test_the_measures_of_a_collection_agree_with_ir_measures(run, qrels):
    measures = [nDCG @ 10, R @ 2, R @ 5, R @ 10, R @ 100, RR @ 10, AP @ 100, Judged @ 10]
    lines = [
        ir_measures.ScoredDoc(query, name, float(-rank))
        for query, ranking in run.items()
        for rank, name in enumerate(ranking, start=1)
    ]
    judgments = [
        ir_measures.Qrel(query, name, grade) for query, grades in qrels.items() for name, grade in grades.items()
    ]
    theirs = ir_measures.calc_aggregate(measures, judgments, lines)
    assert collection_measures(qrels, run) == {str(it): pytest.approx(theirs[it]) for it in measures}


@given(rankings, grades)
def test_measures_are_shares_and_the_ideal_order_is_best(ranking, said):
    ours = measure(ranking, said)
    for value in (ours.ndcg, ours.reciprocal_rank, ours.recall, ours.judged):
        assert value is None or 0 <= value <= 1 + 1e-9
    best = sorted(said, key=lambda name: -said[name])
    assert ndcg(best, said) in (None, pytest.approx(1))


def test_an_objective_is_a_measure_at_its_cutoff():
    ranking, grades = ["a", "b", "c"], {"b": 3, "c": 2, "d": 2}
    assert (Objective().label, Objective("reciprocal_rank", 5).label) == ("nDCG@10", "MRR@5")
    assert Objective("recall", 2).value(ranking, grades) == pytest.approx(1 / 3)
    assert Objective("reciprocal_rank", 2).value(ranking, grades) == 0.5
    assert Objective("reciprocal_rank", 1).value(ranking, grades) == 0.0
    # 7 / log2(3) of the best order's 7 + 3 / log2(3).
    assert Objective("ndcg", 2).value(ranking, grades) == pytest.approx((7 / log2(3)) / (7 + 3 / log2(3)))
    assert Objective("ndcg", 2).value(ranking, {"a": 0}) is None
