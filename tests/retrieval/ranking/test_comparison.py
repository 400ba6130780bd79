import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.ranking.comparison import (
    Direction,
    Move,
    Overlap,
    StageRanking,
    agreements,
    alone,
    compare,
    deciding,
    jaccard,
    overlap_at,
    places_of,
    rank_biased_overlap,
)

rankings = st.lists(st.integers(0, 30), unique=True, max_size=20)


def test_every_item_has_its_two_places():
    compared = compare("abcd", "cae")
    assert compared.moves == (
        Move("c", 3, 1),
        Move("a", 1, 2),
        Move("e", None, 3),
        Move("b", 2, None),
        Move("d", 4, None),
    )
    assert [move.direction for move in compared.moves] == [
        Direction.UP,
        Direction.DOWN,
        Direction.RIGHT,
        Direction.LEFT,
        Direction.LEFT,
    ]
    assert [move.places for move in compared.moves] == [2, 1, 0, 0, 0]
    assert (compared.only_left, compared.both, compared.only_right) == (("b", "d"), ("c", "a"), ("e",))
    assert compared.count(Direction.LEFT) == 2


def test_an_item_at_the_same_place_has_not_moved():
    assert compare("ab", "ac").moves[0].direction is Direction.SAME


def test_jaccard_is_the_share_of_all_items_that_both_have():
    # {a, b, c} and {b, c, d}: 2 of 4.
    assert jaccard("abc", "bcd") == 0.5
    assert jaccard("", "") == 1.0
    assert jaccard("", "a") == 0.0


def test_rank_biased_overlap_of_lists_of_one_length():
    # abc and bad: overlaps 0, 2, 2; agreements 0, 1, 2/3.
    # 0.1 / 0.9 x (0 x 0.9 + 1 x 0.81 + 2/3 x 0.729) + 2/3 x 0.729 = 0.144 + 0.486.
    assert rank_biased_overlap("abc", "bad") == pytest.approx(0.63)


def test_rank_biased_overlap_of_a_shorter_list_is_extrapolated():
    # a and ba: overlaps 0, 1; X(s) = 0. 0.1 / 0.9 x (0 + 1/2 x 0.81) + (1/2 + 0) x 0.81 = 0.045 + 0.405.
    assert rank_biased_overlap("a", "ba") == pytest.approx(0.45)
    # ab and acb: overlaps 1, 1, 2; X(s) = 1. 0.1 / 0.9 x (1 x 0.9 + 1/2 x 0.81 + (2/3 + 1 x 1 / (2 x 3)) x 0.729)
    # + ((2 - 1) / 3 + 1/2) x 0.729 = 0.1 / 0.9 x (0.9 + 0.405 + 0.6075) + 0.6075 = 0.2125 + 0.6075.
    assert rank_biased_overlap("ab", "acb") == pytest.approx(0.82)


def test_a_smaller_persistence_looks_less_far_down():
    # 0.5 / 0.5 x (0 x 0.5 + 1 x 0.25) + 1 x 0.25 = 0.5.
    assert rank_biased_overlap("ab", "ba", persistence=0.5) == pytest.approx(0.5)


def test_an_agreement_at_the_top_counts_for_more():
    assert rank_biased_overlap("abcd", "abdc") > rank_biased_overlap("abcd", "bacd")


def test_of_empty_lists():
    assert rank_biased_overlap("", "") == 1.0
    assert rank_biased_overlap("", "ab") == 0.0


@given(rankings, rankings)
def test_overlap_is_a_share_and_symmetric(left, right):
    overlap = rank_biased_overlap(left, right)
    assert 0.0 <= overlap <= 1.0
    assert overlap == pytest.approx(rank_biased_overlap(right, left))
    assert jaccard(left, right) == jaccard(right, left)


@given(rankings)
def test_identical_lists_overlap_wholly(ranking):
    assert rank_biased_overlap(ranking, ranking) == pytest.approx(1.0)
    assert jaccard(ranking, ranking) == 1.0


@given(rankings, rankings)
def test_lists_without_a_shared_item_do_not_overlap(left, right):
    others = [item + 100 for item in right]
    if left or others:
        assert rank_biased_overlap(left, others) == 0.0


@given(rankings, rankings)
def test_each_item_is_told_once_and_the_other_way_round_mirrored(left, right):
    compared, mirrored = compare(left, right), compare(right, left)
    assert sorted(move.item for move in compared.moves) == sorted({*left, *right})
    assert {(move.item, move.left, move.right) for move in compared.moves} == {
        (move.item, move.right, move.left) for move in mirrored.moves
    }
    assert compared.count(Direction.UP) == mirrored.count(Direction.DOWN)


def test_tops_share_what_both_hold_of_the_longer_one():
    # Of abc and cbx the first three share b and c; of the first two only b.
    assert overlap_at(3, "abcd", "cbxa") == Overlap(2, 3)
    assert overlap_at(2, "abcd", "cbxa") == Overlap(1, 2)
    # The longer top has four items, three of which the shorter one lacks.
    assert overlap_at(10, "a", "bcda").share == 0.25
    assert overlap_at(10, "", "").share == 1.0
    assert overlap_at(10, "", "ab") == Overlap(0, 2)


@given(rankings, rankings, st.integers(1, 25))
def test_overlap_is_mutual_and_a_share(left, right, depth):
    found = overlap_at(depth, left, right)
    assert found == overlap_at(depth, right, left)
    assert 0 <= found.share <= 1
    assert overlap_at(depth, left, left).share == 1.0


def test_places_tell_each_item_in_every_list_and_what_most_hold_first():
    # b stands in all three; a and c in two, at 1 and 3 or at 3 and 1: equal, so the lists' order decides; d in one.
    assert places_of(["abc", "cba", "db"]) == {
        "b": (2, 2, 2),
        "a": (1, 3, None),
        "c": (3, 1, None),
        "d": (None, None, 1),
    }
    assert list(places_of(["abc", "cba", "db"])) == ["b", "a", "c", "d"]
    assert places_of([]) == places_of([[], []]) == {}


def test_alone_is_what_no_other_top_has():
    # x is third in the first list and second in the last: alone among the first two only there.
    assert alone(["abx", "acd", "ex"], 3) == (("b",), ("c", "d"), ("e",))
    assert alone(["abx", "acd", "ex"], 2) == (("b",), ("c",), ("e", "x"))


@given(st.lists(rankings, max_size=4), st.integers(1, 25))
def test_every_item_of_a_top_is_alone_once_or_shared(lists, depth):
    tops = [ranking[:depth] for ranking in lists]
    lone = [item for found in alone(lists, depth) for item in found]
    shared = {item for top in tops for item in top if sum(item in it for it in tops) > 1}
    assert len(lone) == len(set(lone))
    assert set(lone) | shared == {item for top in tops for item in top}
    assert not set(lone) & shared


def stages(**items):
    return [StageRanking(name, list(ids), is_leg=name in {"dense", "words"}) for name, ids in items.items()]


def test_the_stage_that_makes_the_difference_is_found():
    left = stages(dense="abc", words="abc", fuse="abc", rerank="abc", only="a")
    right = stages(dense="abc", words="abc", fuse="abc", rerank="cab")
    found = agreements(left, right)
    assert [(it.stage, it.lost > 0) for it in found] == [
        ("dense", False),
        ("words", False),
        ("fuse", False),
        ("rerank", True),
    ]
    assert deciding(found).stage == "rerank"


def test_a_leg_decides_and_the_fusion_only_passes_it_on():
    found = agreements(stages(dense="abc", words="abc", fuse="abc"), stages(dense="xyz", words="abc", fuse="axb"))
    assert found[0].lost == pytest.approx(1 - found[0].rbo)
    assert (found[2].lost, deciding(found).stage) == (0.0, "dense")


def test_nothing_decides_between_equal_searches():
    same = stages(dense="abc", fuse="abc")
    assert deciding(agreements(same, same)) is None
    assert deciding(()) is None
