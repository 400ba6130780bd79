"""Figures of a confidence, by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.evaluation.calibration import auroc, bootstrap, calibration_error, folds, reliability


def numbers(*values):
    return np.array(values, dtype=np.float64)


def yes(*values):
    return np.array(values, dtype=bool)


def test_auroc_counts_pairs_and_ties_half():
    # Answerable 0.9, 0.4; others 0.4, 0.1. Pairs: 0.9 wins both, 0.4 ties one and wins one: 3.5 of 4.
    assert auroc(numbers(0.9, 0.4, 0.4, 0.1), yes(1, 0, 1, 0)) == pytest.approx(3.5 / 4)


@given(st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=2, max_size=30))
def test_auroc_agrees_with_counting_pairs(pairs):
    values, kinds = numbers(*(it[0] for it in pairs)), yes(*(it[1] for it in pairs))
    if kinds.all() or not kinds.any():
        return
    wins = [(a > b) + (a == b) / 2 for a in values[kinds] for b in values[~kinds]]
    assert auroc(values, kinds) == pytest.approx(np.mean(wins))


def test_the_calibration_error_by_hand():
    # Bin 0.2-0.3: 0.2 and 0.28, none answerable: mean 0.24, gap 0.24. Bin 0.9-1: 0.9 and 1.0, one answerable: mean
    # 0.95, gap 0.45. Half of the questions each: 0.345.
    confidences, answerable = numbers(0.2, 0.28, 0.9, 1.0), yes(0, 0, 1, 0)
    assert calibration_error(confidences, answerable) == pytest.approx(0.345)
    bins = reliability(confidences, answerable)
    assert [(it.low, it.high, it.count) for it in bins] == [(0.2, 0.3, 2), (0.9, 1.0, 2)]
    assert [(it.confidence, it.answerable) for it in bins] == [(pytest.approx(0.24), 0), (pytest.approx(0.95), 0.5)]


def test_weights_count_as_repeated_questions():
    confidences, answerable = numbers(0.2, 0.28, 0.9, 1.0), yes(0, 0, 1, 0)
    weights = numbers(1, 1, 2, 2)
    # A third of the weight at a gap of 0.24, two thirds at 0.45: 0.38.
    assert calibration_error(confidences, answerable, weights) == pytest.approx(0.38)
    repeated = [0, 1, 2, 2, 3, 3]
    assert calibration_error(confidences[repeated], answerable[repeated]) == pytest.approx(0.38)


@given(st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1, max_size=40))
def test_the_calibration_error_is_a_share(pairs):
    error = calibration_error(numbers(*(it[0] for it in pairs)), yes(*(it[1] for it in pairs)))
    assert 0 <= error <= 1


def test_a_perfect_confidence_has_no_error():
    assert calibration_error(numbers(0, 1, 1), yes(0, 1, 1)) == 0.0


def test_the_bootstrap_holds_the_figure_and_is_the_same_every_time():
    values, answerable = numbers(*np.linspace(0, 1, 60)), yes(*(n % 3 == 0 or n > 40 for n in range(60)))
    first, second = (bootstrap(lambda at: auroc(values[at], answerable[at]), answerable) for _ in range(2))
    assert first == second
    assert first.low < first.value < first.high


@given(st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=60), st.integers(2, 5))
def test_a_group_is_never_parted(groups, count):
    fold = folds(groups, count)
    assert len(fold) == len(groups)
    assert all(0 <= it < count for it in fold)
    assert all(len({int(own) for own, it in zip(fold, groups, strict=True) if it == group}) == 1 for group in groups)


def test_folds_are_about_equal():
    # Groups of 4, 3, 2 and 1 into two folds: 4 + 1 and 3 + 2.
    fold = folds(list("aaaabbbccd"), 2)
    assert sorted(np.bincount(fold).tolist()) == [5, 5]
