"""Which configurations a search for better numbers tries, and on which queries."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.ranking.tuning import (
    Measured,
    Range,
    Round,
    best_first,
    drawn,
    grid,
    halving,
    in_hash_order,
    in_tuning_half,
    pareto,
    planned_searches,
)


def test_a_grid_has_every_combination_once():
    found = grid([Range("a", (1, 2, 1)), Range("b", (5, 6))])
    assert found == [{"a": 1, "b": 5}, {"a": 1, "b": 6}, {"a": 2, "b": 5}, {"a": 2, "b": 6}]


def test_draws_are_within_their_bounds_and_the_same_for_the_same_seed():
    ranges = [Range("share", low=0.25, high=0.5), Range("count", low=3, high=5, is_whole=True)]
    found = drawn(ranges, count=200, seed=7)
    assert found == drawn(ranges, count=200, seed=7)
    assert found != drawn(ranges, count=200, seed=8)
    assert all(0.25 <= it["share"] <= 0.5 for it in found)
    assert {it["count"] for it in found} == {3, 4, 5}
    assert len({it["share"] for it in found}) > 100


def test_halving_doubles_the_queries_for_half_the_configurations():
    # 16 configurations, 150 queries: 150 / 2^4 = 9.4 is at least 8.
    assert halving(16, 150) == (Round(16, 10), Round(8, 19), Round(4, 38), Round(2, 75), Round(1, 150))
    # 16 x 10 + 8 x 9 + 4 x 19 + 2 x 37 + 1 x 75
    assert planned_searches(halving(16, 150)) == 160 + 72 + 76 + 74 + 75
    assert halving(16, 15) == (Round(16, 15),)
    assert halving(1, 150) == (Round(1, 150),)


@given(st.integers(1, 200), st.integers(1, 5000))
def test_the_last_round_has_all_queries_and_the_first_all_configurations(configurations, queries):
    rounds = halving(configurations, queries)
    assert (rounds[0].configurations, rounds[-1].queries) == (configurations, queries)
    assert rounds[-1].configurations >= 1
    assert rounds[0].queries >= min(8, queries)


def test_a_query_stays_in_its_half_whatever_else_there_is():
    queries = [f"query {number}" for number in range(1000)]
    tuning = [it for it in queries if in_tuning_half(it)]
    assert 430 < len(tuning) < 570
    assert [it for it in in_hash_order(queries) if in_tuning_half(it)] == in_hash_order(tuning)
    assert in_hash_order(reversed(queries)) == in_hash_order(queries) != queries


def test_the_best_is_fast_enough_and_ties_go_to_the_lower_number():
    found = [Measured(0, 0.5, 40.0), Measured(1, 0.9, 120.0), Measured(2, 0.7, 80.0), Measured(3, 0.7, 10.0)]
    unknown = Measured(4, None, None)
    assert [it.number for it in best_first([unknown, *found], max_p95_ms=None)] == [1, 2, 3, 0, 4]
    assert [it.number for it in best_first([unknown, *found], max_p95_ms=80)] == [2, 3, 0, 1, 4]


def test_the_front_has_what_nothing_beats_in_both():
    found = [Measured(0, 0.5, 40.0), Measured(1, 0.9, 120.0), Measured(2, 0.7, 80.0), Measured(3, 0.6, 90.0)]
    assert [it.number for it in pareto([*found, Measured(4, None, 1.0)])] == [0, 2, 1]


@pytest.mark.parametrize("whole", [True, False])
def test_one_bound_for_both_is_drawn(whole):
    assert drawn([Range("a", low=2, high=2, is_whole=whole)], count=1, seed=0) == [{"a": 2}]
