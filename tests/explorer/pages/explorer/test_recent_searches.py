"""What a process keeps of the latest searches."""

from dataclasses import replace
from uuid import UUID

import pytest

from explorer.pages.explorer.recent_searches import CachedSearch, RecentSearches
from retrieval.index.outbox import Mark
from retrieval.index.store import VectorIndex
from retrieval.search.request import SearchRequest


@pytest.fixture
def kept(finished):
    """Return a function that makes what is kept of a search with a trace id."""

    def of(number):
        outcome = replace(finished, id=UUID(int=number))
        return CachedSearch(outcome, SearchRequest(text="rollback"), None, VectorIndex(1, 8), Mark(1, 0))

    return of


def test_the_oldest_goes_where_there_are_too_many(kept):
    recent = RecentSearches(entries=2)
    for number in (1, 2, 3):
        recent.add(kept(number))
    assert [recent.get(str(UUID(int=number))) for number in (1, 2, 3)] == [None, kept(2), kept(3)]


def test_nothing_is_kept_longer_than_that(kept):
    now = [0.0]
    recent = RecentSearches(seconds=300, clock=lambda: now[0])
    recent.add(kept(1))
    now[0] = 299.0
    recent.add(kept(2))
    assert recent.get(str(UUID(int=1)))
    now[0] = 300.0
    assert [recent.get(str(UUID(int=number))) is None for number in (1, 2)] == [True, False]


@pytest.mark.parametrize("trace", ["", "x", "00000000"])
def test_what_is_no_trace_id_names_no_search(kept, trace):
    recent = RecentSearches()
    recent.add(kept(1))
    assert recent.get(trace) is None
