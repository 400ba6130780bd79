import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.engine.types import ScoreType
from retrieval.errors import RerankError, RerankTimeoutError
from retrieval.presets.consolidated.evidence.scoring import (
    ChunkTime,
    RerankPlanConfig,
    RerankSkip,
    batches,
    budget_floor_ms,
    merged_scores,
    plan_rerank,
    reranked,
)
from tests.retrieval.presets.consolidated.evidence.conftest import numbers, typed

CONFIG = RerankPlanConfig()


def plan(chunks=40, *, remaining_ms=5000.0, admits=True, chunk_ms=25.0):
    return plan_rerank(chunks, remaining_ms=remaining_ms, admits=admits, chunk_ms=chunk_ms, config=CONFIG)


def test_the_budget_floor_grows_with_the_pool():
    assert budget_floor_ms(40, 25.0, CONFIG) == 1000
    assert budget_floor_ms(2, 25.0, CONFIG) == 150


def test_an_open_breaker_is_named_first():
    assert plan(admits=False, remaining_ms=0).skip is RerankSkip.CIRCUIT_BREAKER


def test_too_little_time_to_finish_is_too_little_to_begin():
    assert plan(remaining_ms=999.9).skip is RerankSkip.BUDGET
    assert plan(remaining_ms=1000).skip is None
    assert plan(remaining_ms=1000, chunk_ms=26).skip is RerankSkip.BUDGET
    assert plan(2, remaining_ms=149).skip is RerankSkip.BUDGET


def test_the_three_reasons_by_their_words():
    assert [str(it) for it in RerankSkip] == ["circuit_breaker", "budget", "api_error"]


@pytest.mark.parametrize(
    ("chunks", "split"),
    [(0, ()), (1, ((0, 1),)), (80, ((0, 80),)), (81, ((0, 60), (60, 81))), (120, ((0, 60), (60, 120)))],
)
def test_pools_above_eighty_go_in_batches_of_sixty(chunks, split):
    assert batches(chunks, CONFIG) == split
    assert plan(chunks, remaining_ms=1e9).batches == split


@given(st.integers(0, 500), st.integers(1, 100), st.integers(0, 100))
def test_batches_are_disjoint_and_leave_nothing_out(chunks, batch, more):
    config = RerankPlanConfig(batch=batch, split_above=batch + more)
    places = [place for start, end in batches(chunks, config) for place in range(start, end)]
    assert places == list(range(chunks))


def test_the_batches_that_answered_are_merged():
    scores = merged_scores([((0, 2), [0.1, 0.9]), ((2, 4), RerankError()), ((4, 5), [0.5])])
    assert scores == {0: 0.1, 1: 0.9, 4: 0.5}
    hits = reranked(tuple(typed(n, score=0.3) for n in range(5)), scores, ScoreType.RELEVANCE)
    assert numbers(hits) == [1, 4, 0, 2, 3]
    assert hits[0].signals == {"pooled": 0.3, "rerank": 0.9}
    assert hits[0].contributions == {"rerank": 0.9}
    assert [it.score_type for it in hits] == [*[ScoreType.RELEVANCE] * 3, *[ScoreType.BLEND] * 2]


def test_where_every_batch_failed_the_first_error_is_raised():
    with pytest.raises(RerankTimeoutError):
        merged_scores([((0, 2), RerankTimeoutError()), ((2, 4), RerankError())])
    assert merged_scores([]) == {}


def test_scores_that_do_not_fit_their_batch_are_refused():
    with pytest.raises(ValueError, match="shorter"):
        merged_scores([((0, 2), [0.1])])


def test_the_time_per_chunk_is_learned():
    time = ChunkTime(CONFIG)
    assert time.ms == 25
    time.measured(40, 2.0)  # 50 ms a chunk: 25 + 0.2 * 25
    assert time.ms == 30
    time.measured(0, 2.0)
    assert time.ms == 30


def test_one_timeout_teaches_that_a_chunk_takes_more_than_it_was_given():
    time = ChunkTime(CONFIG)
    time.timed_out(40, 0.4)  # 10 ms a chunk: twice that is less than expected
    assert time.ms == 25
    time.timed_out(40, 15.0)  # 375 ms a chunk, not finished
    assert time.ms == 750
    assert plan(remaining_ms=16_000, chunk_ms=time.ms).skip is RerankSkip.BUDGET


def test_a_time_that_a_request_shortened_excludes_nobody():
    time = ChunkTime(CONFIG)
    time.timed_out(1, 0.525, is_short=True)
    assert time.ms == pytest.approx(125)  # 25 + 0.2 x (525 - 25)
    time.timed_out(1, 0.01, is_short=True)
    assert time.ms == pytest.approx(125)


def test_a_slow_hour_is_forgotten_and_a_fast_service_is_not():
    time = ChunkTime(CONFIG)
    time.measured(1, 10.0)
    assert plan(chunk_ms=time.ms).skip is RerankSkip.BUDGET
    for _ in range(200):
        time.skipped()
    assert time.ms == pytest.approx(25, abs=0.1)
    time.measured(1, 0.001)
    fast = time.ms
    time.skipped()
    assert time.ms == fast < 25


@given(st.lists(st.tuples(st.integers(1, 200), st.floats(0, 60)), max_size=50))
def test_what_is_expected_lies_between_what_was_seen(rows):
    time = ChunkTime(CONFIG)
    seen = [25.0]
    for chunks, seconds in rows:
        time.measured(chunks, seconds)
        seen.append(1000 * seconds / chunks)
    assert min(seen) - 1e-6 <= time.ms <= max(seen) + 1e-6
