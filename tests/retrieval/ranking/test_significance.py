"""Differences between two configurations, and whether chance explains them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.ranking.significance import difference, holm

VALUES = st.floats(0, 1, allow_nan=False)


def draw(count, shift, seed=3):
    rng = np.random.default_rng(seed)
    first = rng.uniform(0, 1, count)
    return first, first + rng.normal(shift, 0.2, count)


def test_by_hand():
    # Of the 16 exchanges of 0.1, 0.2, 0.3, 0.4 only two have as large a mean: none exchanged, and all.
    found = difference([0.0, 0.0, 0.0, 0.0], [0.1, 0.2, 0.3, 0.4])
    assert (found.queries, found.mean, found.p_value) == (4, pytest.approx(0.25), 2 / 16)
    assert (found.wins, found.ties, found.losses) == (4, 0, 0)
    mixed = difference([0.5, 0.5, 0.5], [0.4, 0.5, 0.7])
    assert (mixed.wins, mixed.ties, mixed.losses) == (1, 1, 1)


@pytest.mark.parametrize(("count", "shift"), [(9, 0.1), (12, 0.0), (60, 0.05), (200, 0.02)])
def test_the_test_and_the_interval_agree_with_scipy(count, shift):
    from scipy import stats

    first, second = draw(count, shift)
    found = difference(first, second)

    def mean(values, axis):
        return np.mean(values, axis=axis)

    test = stats.permutation_test(
        (second - first,), mean, permutation_type="samples", vectorized=True, n_resamples=20_000, rng=5
    )
    interval = stats.bootstrap((second - first,), np.mean, method="percentile", n_resamples=20_000, rng=5)
    assert found.p_value == pytest.approx(test.pvalue, abs=0.012)
    assert (found.low, found.high) == pytest.approx(tuple(interval.confidence_interval), abs=0.004)


def test_nothing_differs_and_nothing_is_there():
    same = difference([0.2, 0.9], [0.2, 0.9])
    assert (same.mean, same.p_value, same.ties, same.is_clear) == (0.0, 1.0, 2, False)
    assert difference([], []) is None
    with pytest.raises(ValueError, match="shorter"):
        difference([1.0, 2.0], [1.0])


@given(st.lists(st.tuples(VALUES, VALUES), min_size=1, max_size=8))
def test_exchanging_the_two_turns_the_signs_and_keeps_the_test(pairs):
    first, second = ([pair[side] for pair in pairs] for side in (0, 1))
    found, turned = difference(first, second), difference(second, first)
    assert turned.mean == pytest.approx(-found.mean)
    assert turned.p_value == pytest.approx(found.p_value)
    assert (turned.wins, turned.losses) == (found.losses, found.wins)
    assert found.low <= found.mean + 1e-12
    assert found.mean - 1e-12 <= found.high
    assert 0 < found.p_value <= 1


def test_p_values_are_corrected_by_holm():
    # In order 0.01, 0.03, 0.04: times 3, 2 and 1 are 0.03, 0.06 and 0.04, and none is below an earlier one.
    assert holm([0.04, 0.01, 0.03]) == pytest.approx([0.06, 0.03, 0.06])
    assert holm([0.6, 0.7]) == [1.0, 1.0]
    assert (holm([0.2]), holm([])) == ([0.2], [])


@given(st.lists(VALUES, min_size=1, max_size=6))
def test_corrected_p_values_are_between_the_raw_ones_and_bonferronis(values):
    for raw, corrected in zip(values, holm(values), strict=True):
        assert raw <= corrected <= min(1.0, len(values) * max(values))
    assert np.argsort(values, kind="stable").tolist() == sorted(
        range(len(values)), key=lambda it: (holm(values)[it], values[it])
    )
