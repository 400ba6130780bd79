import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.engine.types import Hit, ScoreType
from retrieval.ranking.fusion import leg_of, min_max, reciprocal_rank_fusion, variant_leg
from tests.retrieval.conftest import chunk_id


def ranking(*numbers):
    return tuple(Hit(chunk_id(number), -float(place), ScoreType.COSINE) for place, number in enumerate(numbers))


def test_scores_are_the_sum_of_reciprocal_ranks():
    fused = reciprocal_rank_fusion({"dense": ranking(1, 2), "fulltext": ranking(2, 3)}, rank_constant=60)
    scores = {hit.chunk_id: hit.score for hit in fused}
    # 1: dense rank 1 = 1/61; 2: dense rank 2 and full text rank 1 = 1/62 + 1/61; 3: full text rank 2 = 1/62.
    assert scores[chunk_id(1)] == pytest.approx(1 / 61)
    assert scores[chunk_id(2)] == pytest.approx(1 / 62 + 1 / 61)
    assert scores[chunk_id(3)] == pytest.approx(1 / 62)
    assert [hit.chunk_id for hit in fused] == [chunk_id(2), chunk_id(1), chunk_id(3)]


def test_a_leg_that_did_not_find_a_chunk_gives_it_no_rank():
    fused = reciprocal_rank_fusion({"dense": ranking(1), "fulltext": ranking(2)}, rank_constant=60)
    assert [dict(hit.ranks) for hit in fused] == [{"dense": 1}, {"fulltext": 1}]


def test_ties_go_to_the_lower_chunk_id():
    fused = reciprocal_rank_fusion({"dense": ranking(9), "fulltext": ranking(4)}, rank_constant=60)
    assert [hit.chunk_id for hit in fused] == [chunk_id(4), chunk_id(9)]


@given(
    dense=st.lists(st.integers(1, 40), unique=True, max_size=20),
    fulltext=st.lists(st.integers(1, 40), unique=True, max_size=20),
    rank_constant=st.integers(1, 100),
)
def test_fusion_keeps_every_chunk_once_in_order_and_in_bounds(dense, fulltext, rank_constant):
    rankings = {"dense": ranking(*dense), "fulltext": ranking(*fulltext)}
    fused = reciprocal_rank_fusion(rankings, rank_constant=rank_constant)
    assert {hit.chunk_id for hit in fused} == {chunk_id(number) for number in {*dense, *fulltext}}
    assert len(fused) == len({*dense, *fulltext})
    scores = [hit.score for hit in fused]
    assert scores == sorted(scores, reverse=True)
    assert all(0 < score <= 2 / (rank_constant + 1) for score in scores)
    swapped = reciprocal_rank_fusion(dict(reversed(rankings.items())), rank_constant=rank_constant)
    assert [hit.chunk_id for hit in swapped] == [hit.chunk_id for hit in fused]


def test_min_max_maps_the_range_to_0_and_1():
    assert min_max([2.0, 4.0, 3.0]) == [0.0, 1.0, 0.5]


def test_a_range_below_the_least_span_is_not_blown_up():
    # 0.02 apart in a range taken as 0.1 wide: 0.2.
    assert min_max([0.50, 0.52], min_span=0.1) == pytest.approx([0.0, 0.2])


def test_min_max_of_equal_values_is_0():
    assert min_max([0.7, 0.7]) == [0.0, 0.0]
    assert min_max([]) == []


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=30))
def test_min_max_stays_within_0_and_1_and_keeps_the_order(values):
    scaled = min_max(values)
    assert all(0.0 <= value <= 1.0 and math.isfinite(value) for value in scaled)
    pairs = sorted(zip(values, scaled, strict=True))
    assert all(lower[1] <= upper[1] for lower, upper in pairwise(pairs))


@pytest.mark.parametrize(
    ("ranking", "leg"), [("dense", "dense"), ("dense_2", "dense"), ("bm25_10", "bm25"), ("late_words", "late_words")]
)
def test_a_ranking_names_its_leg(ranking, leg):
    assert leg_of(ranking) == leg


def test_another_way_to_put_it_keeps_its_leg():
    assert leg_of(variant_leg("dense", 2)) == "dense"
