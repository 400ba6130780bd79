"""Team draft and its figures: by hand, by all tosses, and against independent computations."""

from collections import Counter
from itertools import product
from math import comb, isclose

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retrieval.ranking.interleaving import Preference, Team, coin, team_draft
from tests.profiles import examples

A, B = Team.A, Team.B
RANKINGS = st.lists(st.integers(0, 12), unique=True, max_size=10)


def drafted(first, second, tosses, length=10):
    return team_draft(first, second, begins=iter(tosses).__next__, length=length)


def test_teams_take_turns_and_nobody_takes_an_item_twice():
    taken = [("a", A), ("b", B), ("c", A), ("e", B), ("x", B), ("d", None)]
    assert list(drafted("abcd", "bexa", [True, True, False]).items()) == taken
    assert list(drafted("abcd", "bexa", [False, True], length=3).items()) == [("b", B), ("a", A), ("c", A)]


def test_the_rest_of_the_longer_list_has_no_team():
    assert list(drafted("abcd", "a", [True]).items()) == [("a", A), ("b", None), ("c", None), ("d", None)]
    assert drafted("a", "", []) == {"a": None}
    assert drafted("", "", []) == {}
    assert list(drafted("abc", "z", [False], length=3).items()) == [("z", B), ("a", None), ("b", None)]


@settings(max_examples=examples(200))
@given(first=RANKINGS, second=RANKINGS, seed=st.integers(0, 2**32), length=st.integers(0, 12))
def test_a_draft_is_a_fair_merged_list(first, second, seed, length):
    found = team_draft(first, second, begins=coin(seed), length=length)
    assert len(found) == min(length, len({*first, *second}))
    teams = [it for it in found.values() if it]
    assert abs(teams.count(A) - teams.count(B)) <= 1
    # Each team's items are in the order of its ranking, and every prefix holds the best of both rankings.
    for team, ranking in ((A, first), (B, second)):
        own = [item for item, of in found.items() if of is team]
        assert own == [it for it in ranking if it in own]
    shorter = team_draft(first, second, begins=coin(seed), length=max(0, length - 1))
    assert list(shorter) == list(found)[: len(shorter)]
    assert team_draft(first, second, begins=coin(seed), length=length) == found


@pytest.mark.parametrize(("first", "second"), [("abcd", "bdae"), ("abcd", "abcd"), ("abcd", "wxyz")])
def test_clicks_on_places_favour_neither(first, second):
    # Over all tosses, each place belongs to each team equally often: who clicks by place alone prefers none.
    shown = [list(drafted(first, second, tosses, length=4).values()) for tosses in product((True, False), repeat=4)]
    for teams in zip(*shown, strict=True):
        assert Counter(teams)[A] == Counter(teams)[B] == len(shown) / 2


def test_a_coin_is_fair_and_repeatable():
    toss = coin(7)
    tosses = [toss() for _ in range(10_000)]
    assert 4_800 < sum(tosses) < 5_200
    again = coin(7)
    assert [again() for _ in range(10_000)] == tosses


def test_the_figures_worked_by_hand():
    found = Preference.of([(1, 0)] * 8 + [(0, 2)] * 2 + [(1, 1)] * 2)
    assert (found.wins_a, found.wins_b, found.ties, found.questions) == (8, 2, 2, 12)
    assert isclose(found.delta, 9 / 12 - 0.5)
    # At most two heads or two tails in ten tosses.
    assert isclose(found.p_value, 2 * (1 + 10 + 45) / 1024)
    # Wilson's interval of 9 of 12: 0.468 to 0.911.
    assert found.interval == pytest.approx((0.468 - 0.5, 0.911 - 0.5), abs=5e-4)
    assert found.winner is None


def test_a_thumb_down_is_credit_for_the_other():
    assert Preference.of([(-3, 0)]) == Preference(wins_b=1)


def test_a_winner_needs_the_interval_and_the_test():
    assert Preference(wins_a=15, wins_b=3).winner is A
    assert Preference(wins_a=3, wins_b=15).winner is B
    # Wilson's interval of 4 of 4 leaves out one half, but four fair coins agree in one of eight cases.
    few = Preference(wins_a=4)
    assert few.interval[0] > 0
    assert (few.p_value, few.winner) == (0.125, None)
    # Among very many ties the test finds a difference that is tiny.
    assert Preference(wins_a=12, wins_b=2, ties=400).p_value < 0.05
    assert Preference(wins_a=12, wins_b=2, ties=400).winner is None


def test_without_credit_there_are_no_figures():
    nothing = Preference()
    assert (nothing.delta, nothing.interval, nothing.p_value, nothing.winner) == (None, None, 1.0, None)


@given(wins_a=st.integers(0, 300), wins_b=st.integers(0, 300))
def test_the_sign_test_is_the_binomial_sum(wins_a, wins_b):
    n = wins_a + wins_b
    tail = sum(comb(n, k) for k in range(min(wins_a, wins_b) + 1)) / 2**n
    assert isclose(Preference(wins_a, wins_b).p_value, min(1.0, 2 * tail))
