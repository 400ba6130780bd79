"""One budget for several searches: shares, what is left over, and those that get none."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.search.evidence_runs import MIN_SECONDS, Budget
from tests.retrieval.conftest import Clock

SECONDS = st.floats(min_value=0, max_value=1000, allow_nan=False)


def budget(seconds):
    clock = Clock()
    return Budget(seconds, clock(), clock), clock


def test_each_gets_an_equal_share_of_what_is_left():
    # 12 s for 4: 3 s; the first takes 6 s, so 6 s are left for 3: 2 s; the second takes nothing: 6 s for 2: 3 s.
    shared, clock = budget(12.0)
    assert shared.share(4) == 3.0
    clock.now += 6.0
    assert shared.share(3) == 2.0
    assert shared.share(2) == 3.0


def test_where_it_is_too_little_for_all_the_first_get_what_they_can_use():
    # 0.6 s for 8 would be 0.075 s each.
    shared, clock = budget(0.6)
    shares = []
    for waiting in (8, 7, 6, 5):
        shares.append(shared.share(waiting))
        clock.now += shares[-1]
    assert shares == pytest.approx([0.25, 0.25, 0.1, 0.0])


def test_without_a_budget_there_is_no_share():
    shared, clock = budget(None)
    clock.now += 1e6
    assert shared.share(3) is None
    assert shared.left is None


@given(SECONDS, st.lists(st.floats(min_value=0, max_value=1.2, allow_nan=False), min_size=1, max_size=30))
def test_no_share_is_more_than_what_is_left(seconds, spent):
    """Each search takes so much of its share; 1.2 is one that overruns."""
    shared, clock = budget(seconds)
    for place, part in enumerate(spent):
        left = shared.left
        share = shared.share(len(spent) - place)
        assert 0 <= share <= left
        assert share >= min(left, MIN_SECONDS)
        clock.now += share * part
    assert clock.now <= seconds * 1.2 + 1e-9


@given(SECONDS, st.integers(min_value=1, max_value=30))
def test_searches_that_use_their_shares_use_the_budget_and_no_more(seconds, count):
    shared, clock = budget(seconds)
    for waiting in range(count, 0, -1):
        clock.now += shared.share(waiting)
    assert clock.now == pytest.approx(seconds)


@given(st.floats(min_value=20, max_value=1000), st.integers(min_value=2, max_value=30))
def test_what_one_leaves_over_raises_the_share_of_the_next(seconds, count):
    shared, _ = budget(seconds)
    assert shared.share(count - 1) > shared.share(count)
