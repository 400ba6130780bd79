"""Choosing the indexes of a full-text statement."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.engine.types import Term
from retrieval.index import store
from retrieval.index.lexemes import any_of
from retrieval.index.statements import Reach, cheapest_reach


@pytest.mark.parametrize(
    ("chunks", "matches", "everything", "expected"),
    [
        # Both: 500,000 + 10,000 + 150,000. By the matches: 10,000 x 31. By the scope: 500,000 x 20.
        (500_000, 5_000, 1e6, Reach.MATCHES),
        # Both: 100,000 + 50,000 + 150,000. By the matches: 50,000 x 31.
        (100_000, 5_000, 1e6, Reach.BOTH),
        # Both: 10,000 + 500,000 + 150,000. By the scope: 10,000 x 20.
        (10_000, 5_000, 1e6, Reach.SCOPE),
        (10_000, 10, 1e6, Reach.BOTH),
        (1_000_000, 5_000, 1e6, Reach.MATCHES),
        # Before the first statistics nothing is known of the store.
        (1_000, 100, 0.0, Reach.MATCHES),
    ],
)
def test_the_cheapest_way_is_taken(chunks, matches, everything, expected):
    assert cheapest_reach(chunks=chunks, matches=matches, everything=everything) is expected


@given(st.integers(0, 10**7), st.integers(0, 10**6), st.floats(0, 1e8))
def test_there_is_always_a_way(chunks, matches, everything):
    assert cheapest_reach(chunks=chunks, matches=matches, everything=everything) in Reach


def test_a_small_search_is_left_to_the_planner(world, django_assert_num_queries):
    with django_assert_num_queries(0):
        assert store.reach_of(chunks=99_999, matches=999) is Reach.BOTH


def test_every_way_finds_the_same(world, alice):
    terms = [Term("rollback", 3, 0.5), Term("zanzibar", 1, 2.0)]
    search = store.TextSearch((0.1, 0.5, 0.7, 1.0), 0.2)
    found = [
        store.fulltext(
            any_of(terms), terms=terms, scope=alice, search=search, depth=9, limit=9, timeout_seconds=5, reach=reach
        )
        for reach in Reach
    ]
    assert found[0].scored == 3
    assert found == [found[0]] * 3
