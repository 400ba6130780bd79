from threading import Barrier, Thread

import pytest

from retrieval.encoders.breaker import BreakerState
from retrieval.encoders.reranker import UnavailableReranker
from retrieval.errors import RerankError
from retrieval.presets.consolidated.evidence.rerank_guard import BreakerConfig, RerankFigures, RerankGuards
from retrieval.presets.consolidated.evidence.scoring import Provider, RerankPlanConfig, RerankSkip

BREAKER, PLAN = BreakerConfig(), RerankPlanConfig()


def reranker(name="one"):
    return UnavailableReranker(name, "It is not here.")


def fail(guard, times):
    for _ in range(times):
        with pytest.raises(RerankError), guard.breaker.guarding():
            raise RerankError


def test_a_reranker_made_anew_for_each_search_has_the_same_guard():
    guards = RerankGuards()
    assert guards.guard(reranker(), BREAKER, PLAN) is guards.guard(reranker(), BREAKER, PLAN)


def test_another_reranker_has_another_and_what_is_one_searchs_own_makes_none():
    guards = RerankGuards()
    own = guards.guard(reranker(), BREAKER, PLAN)
    assert guards.guard(reranker("two"), BREAKER, PLAN) is not own
    fail(own, 3)
    assert guards.guard(reranker(), BREAKER, RerankPlanConfig(min_budget_ms=1, split_above=7, batch=7)) is own
    assert guards.guard(reranker(), BREAKER, PLAN).breaker.state is BreakerState.OPEN


@pytest.mark.parametrize(
    ("breaker", "plan"),
    [
        (BreakerConfig(failures=9), PLAN),
        (BREAKER, RerankPlanConfig(chunk_ms=1.0)),
        (BREAKER, RerankPlanConfig(learning=1.0)),
        (BREAKER, RerankPlanConfig(forgetting=1.0)),
    ],
)
def test_numbers_that_went_live_begin_anew_in_the_place_of_the_others(breaker, plan):
    guards = RerankGuards()
    fail(guards.guard(reranker(), BREAKER, PLAN), 3)
    anew = guards.guard(reranker(), breaker, plan)
    assert guards.states == {"one": BreakerState.CLOSED}
    assert guards.guard(reranker(), breaker, plan) is anew


def test_the_state_of_each_reranker_is_told(clock):
    guards = RerankGuards(clock)
    assert guards.states == {}
    guards.guard(reranker("two"), BREAKER, PLAN)
    fail(guards.guard(reranker(), BREAKER, PLAN), 3)
    assert guards.states == {"one": BreakerState.OPEN, "two": BreakerState.CLOSED}
    clock.now = 60
    assert guards.states["one"] is BreakerState.HALF_OPEN
    assert guards.chunk_ms == {"one": 25.0, "two": 25.0}


def test_searches_side_by_side_share_one_guard():
    guards, barrier, found = RerankGuards(), Barrier(8), []

    def look():
        barrier.wait()
        found.append(guards.guard(reranker(), BREAKER, PLAN))

    threads = [Thread(target=look) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(map(id, found))) == 1


def test_every_provider_and_reason_is_named_from_the_beginning():
    figures = RerankFigures()
    assert figures.providers == dict.fromkeys(Provider, 0)
    assert figures.skips == dict.fromkeys(RerankSkip, 0)
    figures.scored(Provider.SEMANTIC_BM25)
    figures.skipped(RerankSkip.BUDGET)
    assert figures.providers[Provider.SEMANTIC_BM25] == figures.skips[RerankSkip.BUDGET] == 1
