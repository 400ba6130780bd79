import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from time import perf_counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.encoders.breaker import BreakerState
from retrieval.engine.deadline import Deadline
from retrieval.engine.state import Query
from retrieval.engine.types import ScoreType
from retrieval.errors import RerankBreakerOpenError, RerankError, RerankTimeoutError
from retrieval.presets.consolidated.evidence.rerank_guard import BreakerConfig, RerankGuards
from retrieval.presets.consolidated.evidence.scoring import Provider, RerankPlanConfig, RerankSkip, SemanticBm25Config
from retrieval.presets.consolidated.stages.rerank import CrossEncoding, RerankSection
from retrieval.search.runtime import InlineExecutor
from tests.retrieval.conftest import Clock, chunk_id, hit
from tests.retrieval.presets.consolidated.stages.sectioned import CrossEncoder, failing, sectioned, sleeping, taking

CROSS, FALLBACK, NOBODY = Provider


def pool(count):
    """Return hits 1 to `count`, best first by the fusion; by meaning and words the order is the other way round."""
    return tuple(
        replace(hit(number, 1 / (60 + number), cosine=number / 1000, bm25=float(number)), score_type=ScoreType.RRF)
        for number in range(1, count + 1)
    )


@pytest.fixture
def guards(clock):
    return RerankGuards(clock)


@pytest.fixture
def run(state, clock, guards):
    """Return a function that reranks a pool, by default of five with twenty seconds to go."""

    def rerank(cross_encoder, hits=None, *, seconds=20.0, executor=None, **plan):
        plan = RerankPlanConfig(**plan)
        cross = None
        if cross_encoder is not None:
            guard = guards.guard(cross_encoder, BreakerConfig(), plan)
            cross = CrossEncoding(cross_encoder, guard, executor or InlineExecutor())
        begun = replace(state, deadline=Deadline.after(seconds, clock))
        stage = RerankSection(plan, SemanticBm25Config(), cross, guards.figures)
        return stage(sectioned(begun, pool(5) if hits is None else hits))

    return rerank


def numbers(state):
    return [it.chunk_id.document_id.int for it in state.hits]


def codes(state):
    return [(note.code, note.degraded) for note in state.notes]


def event(state, name):
    (found,) = (it for it in state.events if it["event"] == name)
    return found


def is_by_fallback(state):
    return all(it.provider == FALLBACK and it.score_type is ScoreType.BLEND for it in state.hits)


def test_the_cross_encoder_has_the_last_word_and_the_fallback_no_part(run, guards):
    after = run(CrossEncoder())
    assert numbers(after) == [5, 4, 3, 2, 1]
    first = after.hits[0]
    assert (first.score, first.score_type, first.provider) == (0.05, ScoreType.RELEVANCE, CROSS)
    assert first.contributions == {"rerank": 0.05}
    assert first.signals == {"cosine": 0.005, "bm25": 5.0, "pooled": 1 / 65, "rerank": 0.05}
    assert codes(after) == [("reranked", False)]
    assert event(after, "reranked") == {
        "event": "reranked",
        "provider": "cross_encoder",
        "reranker": "numbers",
        "chunks": 5,
        "scored": 5,
        "batches": 1,
        "failed_batches": 0,
        "ms": 0.0,
        "chunk_ms": 20.0,  # 25 expected, nothing measured: 25 + 0.2 x (0 - 25)
        "breaker": "closed",
    }
    assert guards.figures.providers == {CROSS: 1, FALLBACK: 0, NOBODY: 0}


def test_without_a_cross_encoder_meaning_and_words_score_and_nothing_is_degraded(run, guards):
    after = run(None)
    assert is_by_fallback(after)
    # 0.7 x 0.005 + 0.3 x 5/5
    assert after.hits[0].score == pytest.approx(0.3035)
    assert after.hits[0].contributions == pytest.approx({"semantic": 0.0035, "bm25": 0.3})
    assert codes(after) == [("rerank_none", False)]
    assert event(after, "reranked")["provider"] == "semantic_bm25"
    assert not any(it["event"] == "cross_encoder_skipped" for it in after.events)
    assert sum(guards.figures.skips.values()) == 0


def test_full_text_stands_for_bm25_where_there_is_no_index_of_it(run):
    hits = (hit(1, cosine=0.5, fulltext=1.0), hit(2, cosine=0.5, fulltext=2.0))
    after = run(None, hits)
    assert numbers(after) == [2, 1]
    assert after.hits[1].contributions == pytest.approx({"semantic": 0.35, "bm25": 0.15})
    assert event(after, "reranked")["lexical"] == "fulltext"


def test_without_hits_nobody_is_asked(run):
    cross_encoder = CrossEncoder()
    after = run(cross_encoder, ())
    assert (cross_encoder.calls, after.hits, after.events, after.notes) == ([], (), (), ())


def test_it_reads_the_query_without_syntax_and_each_text_with_its_place(state, run):
    facts = replace(hit(1).facts, title="Runbook", heading_path=("Staging", "Rollback"), text="Do it 7")
    cross_encoder = CrossEncoder()
    after = run(cross_encoder, (replace(hit(1), facts=facts),))
    assert cross_encoder.calls[0][:2] == ("rollback", ["Runbook > Staging > Rollback\nDo it 7"])
    query = Query('"roll back" -staging', '"roll back" -staging', "roll back")
    RerankSection(RerankPlanConfig(), SemanticBm25Config(), _cross(cross_encoder), RerankGuards().figures)(
        replace(after, query=query)
    )
    assert cross_encoder.calls[1][0] == "roll back"


def _cross(cross_encoder, guards=None):
    guard = (guards or RerankGuards()).guard(cross_encoder, BreakerConfig(), RerankPlanConfig())
    return CrossEncoding(cross_encoder, guard, InlineExecutor())


def test_its_time_ends_where_optional_stages_would_be_skipped(run):
    cross_encoder = CrossEncoder()
    run(cross_encoder, seconds=10)
    assert cross_encoder.calls[0][2] == pytest.approx(8.5)


def test_with_too_little_time_to_finish_it_is_not_begun(run, guards):
    cross_encoder = CrossEncoder()
    # Twenty chunks at 25 ms take 500 ms; 85 % of 0.58 s are 493.
    after = run(cross_encoder, pool(20), seconds=0.58)
    assert (cross_encoder.calls, is_by_fallback(after)) == ([], True)
    skipped = event(after, "cross_encoder_skipped")
    assert (skipped["reason"], skipped["floor_ms"], skipped["remaining_ms"]) == ("budget", 500.0, 493.0)
    assert codes(after) == [("rerank_budget", True)]
    assert guards.figures.skips[RerankSkip.BUDGET] == 1
    assert run(cross_encoder, pool(20), seconds=0.59).hits[0].provider == CROSS


def test_what_a_chunk_takes_is_learned_from_what_it_took(run, clock):
    cross_encoder = CrossEncoder()
    cross_encoder.does = taking(clock, 5.0)
    # One second a chunk: 25 + 0.2 x (1000 - 25) = 220 ms from then on.
    assert event(run(cross_encoder), "reranked")["chunk_ms"] == 220
    assert event(run(cross_encoder, seconds=1.2), "cross_encoder_skipped")["floor_ms"] == 1100


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (RerankError("It broke."), "rerank_failed"),
        (RerankTimeoutError(), "rerank_timeout"),
        (ZeroDivisionError("secret text"), "rerank_failed"),
        (TimeoutError("secret text"), "rerank_failed"),
        (MemoryError(), "rerank_failed"),
    ],
)
def test_one_that_fails_leaves_the_pool_to_the_fallback(run, guards, error, code, caplog):
    cross_encoder = CrossEncoder()
    cross_encoder.does = failing(error)
    after = run(cross_encoder)
    assert is_by_fallback(after)
    assert codes(after) == [(code, True)]
    skipped = event(after, "cross_encoder_skipped")
    assert (skipped["reason"], skipped["error"]) == ("api_error", code)
    assert "secret" not in f"{after.notes}{after.events}{caplog.text}"
    assert guards.figures.skips[RerankSkip.API_ERROR] == 1


@pytest.mark.parametrize("answer", [[], [1.0], [1.0] * 6, [1.0, 2.0, math.nan, 4.0, 5.0], [math.inf] * 5, ["no"] * 5])
def test_scores_that_make_no_sense_are_a_failure(run, answer):
    cross_encoder = CrossEncoder()
    cross_encoder.does = lambda _: answer
    after = run(cross_encoder)
    assert is_by_fallback(after)
    assert event(after, "cross_encoder_skipped")["reason"] == "api_error"


def test_after_three_failures_it_is_left_alone_for_a_minute_and_needs_two_successes(run, clock):
    cross_encoder = CrossEncoder()
    cross_encoder.does = failing(RerankError())
    for _ in range(3):
        run(cross_encoder)
    skipped = event(run(cross_encoder), "cross_encoder_skipped")
    assert (skipped["reason"], skipped["breaker"], len(cross_encoder.calls)) == ("circuit_breaker", "open", 3)
    cross_encoder.does = lambda _: None
    clock.now += 60
    assert event(run(cross_encoder), "reranked")["breaker"] == "half_open"
    assert event(run(cross_encoder), "reranked")["breaker"] == "closed"


def test_a_slow_one_is_waited_for_once_and_not_asked_again_with_as_much_time(run, clock):
    """Of 15 s for 40 chunks each had 375 ms; with twice that the same pool needs 30 s."""
    cross_encoder = CrossEncoder()
    cross_encoder.does = taking(clock, 15.0, failing(RerankTimeoutError()))
    run(cross_encoder, pool(40), seconds=20.0)
    skipped = event(run(cross_encoder, pool(40), seconds=21.0), "cross_encoder_skipped")
    assert (skipped["reason"], skipped["floor_ms"], len(cross_encoder.calls)) == ("budget", 30_000, 1)


def test_one_batch_that_times_out_is_learned_from_although_the_others_have_scores(run, clock):
    cross_encoder = CrossEncoder()

    def slow(texts):
        if len(texts) < 60:
            clock.now += 12.0
            raise RerankTimeoutError

    cross_encoder.does = slow
    after = run(cross_encoder, pool(100))
    assert codes(after) == [("reranked", False), ("rerank_partial", True)]
    assert event(after, "reranked")["chunk_ms"] == 240  # twice 12 s for 100


def test_a_request_that_left_no_time_opens_no_breaker_for_others(run, guards):
    cross_encoder = CrossEncoder()
    cross_encoder.does = failing(RerankTimeoutError())
    for _ in range(5):
        run(cross_encoder, seconds=1.0)
    assert guards.states == {"numbers": BreakerState.CLOSED}
    for _ in range(3):
        run(cross_encoder, seconds=5.0)
    assert guards.states == {"numbers": BreakerState.OPEN}


def test_the_refusal_of_a_services_own_breaker_is_no_failure(run, guards):
    cross_encoder = CrossEncoder()
    cross_encoder.does = failing(RerankBreakerOpenError())
    for _ in range(4):
        after = run(cross_encoder)
    assert event(after, "cross_encoder_skipped")["reason"] == "circuit_breaker"
    assert guards.states == {"numbers": BreakerState.CLOSED}


def test_more_than_eighty_go_in_batches_of_sixty(run):
    cross_encoder = CrossEncoder()
    with ThreadPoolExecutor(4) as executor:
        after = run(cross_encoder, pool(150), executor=executor, seconds=60)
    assert sorted(len(texts) for _, texts, _ in cross_encoder.calls) == [30, 60, 60]
    assert numbers(after) == list(range(150, 0, -1))
    assert event(after, "reranked")["batches"] == 3
    run(cross_encoder, pool(80))
    assert len(cross_encoder.calls[-1][1]) == 80


def test_the_hits_of_a_failed_batch_stand_behind_the_others_unscored(run, guards):
    cross_encoder = CrossEncoder()
    second = f"text {65}"
    cross_encoder.does = lambda texts: failing(RerankError())(texts) if any(second in it for it in texts) else None
    hits = pool(150)
    after = run(cross_encoder, hits, seconds=60)
    assert numbers(after) == [*range(150, 120, -1), *range(60, 0, -1), *range(61, 121)]
    assert after.hits[90:] == tuple(replace(it, provider=NOBODY) for it in hits[60:120])
    assert codes(after) == [("reranked", False), ("rerank_partial", True)]
    told = event(after, "reranked")
    assert (told["scored"], told["failed_batches"]) == (90, 1)
    assert guards.states == {"numbers": BreakerState.CLOSED}


def test_where_every_batch_fails_the_breaker_hears_of_one_failure(run, guards):
    cross_encoder = CrossEncoder()
    cross_encoder.does = failing(RerankError())
    for failures in (1, 2):
        after = run(cross_encoder, pool(150), seconds=60)
        assert (is_by_fallback(after), len(cross_encoder.calls)) == (True, 3 * failures)
        assert guards.states == {"numbers": BreakerState.CLOSED}
    run(cross_encoder, pool(150), seconds=60)
    assert guards.states == {"numbers": BreakerState.OPEN}


def test_one_that_does_not_keep_to_its_time_is_not_waited_for(state, guards):
    cross_encoder = CrossEncoder()
    cross_encoder.does = sleeping(2.0)
    with ThreadPoolExecutor(2) as executor:
        cross = CrossEncoding(cross_encoder, _cross(cross_encoder, guards).guard, executor)
        stage = RerankSection(RerankPlanConfig(), SemanticBm25Config(), cross, guards.figures)
        begun = replace(state, deadline=Deadline.after(0.4))
        started = perf_counter()
        after = stage(sectioned(begun, pool(3)))
        assert perf_counter() - started < 1.5
    assert is_by_fallback(after)
    assert event(after, "cross_encoder_skipped")["error"] == "rerank_timeout"


def test_late_interaction_is_added_to_the_place_in_the_pool(run):
    cross_encoder = CrossEncoder(score_type=ScoreType.MAXSIM, blend_weight=0.5)
    cross_encoder.does = lambda _: [0.1, 0.5, 0.3, 0.2]
    after = run(cross_encoder, pool(4))
    # Places 1, 0.75, 0.5, 0.25; the scores are worth 0, 0.5, 0.25, 0.125.
    assert numbers(after) == [2, 1, 3, 4]
    assert [it.score for it in after.hits] == pytest.approx([1.25, 1.0, 0.75, 0.375])
    assert after.hits[0].contributions == pytest.approx({"pooled": 0.75, "rerank": 0.5})
    assert after.hits[0].signals["rerank"] == 0.5


class StoredVectors(CrossEncoder):
    """A reranker that reads what is stored of hits."""

    def read(self, query):
        return query

    def score_hits(self, query, hits, *, scope, timeout_seconds, read=None):  # noqa: ARG002 -- the protocol's
        self.scope = scope
        return [float(it.chunk_id.document_id.int) for it in hits]


def test_one_that_reads_stored_vectors_is_given_the_hits_and_the_scope(run):
    reader = StoredVectors()
    after = run(reader)
    assert (reader.calls, reader.scope, numbers(after)) == ([], after.scope, [5, 4, 3, 2, 1])


@given(
    count=st.integers(1, 30),
    batch=st.integers(1, 10),
    broken=st.sets(st.integers(0, 29)),
    values=st.lists(st.sampled_from([-1.0, 0.0, 0.5, 2.0]), min_size=30, max_size=30),
)
def test_every_hit_is_scored_by_one_of_the_two_or_by_none(count, batch, broken, values):
    hits, guards = pool(count), RerankGuards()
    cross_encoder = CrossEncoder()

    def answer(texts):
        places = [int(text.rsplit(" ", 1)[1]) - 1 for text in texts]
        if broken.intersection(places):
            raise RerankError
        return [values[place] for place in places]

    cross_encoder.does = answer
    plan = RerankPlanConfig(batch=batch, split_above=batch)
    cross = CrossEncoding(cross_encoder, guards.guard(cross_encoder, BreakerConfig(), plan), InlineExecutor())
    begun = sectioned(state_of(), hits)
    after, again = (RerankSection(plan, SemanticBm25Config(), cross, guards.figures)(begun) for _ in range(2))
    assert sorted(it.chunk_id for it in after.hits) == [it.chunk_id for it in hits]
    assert [it.chunk_id for it in again.hits] == [it.chunk_id for it in after.hits]
    providers = [it.provider for it in after.hits]
    assert not {CROSS, FALLBACK} <= set(providers)
    scored = [it for it in after.hits if it.provider != NOBODY]
    assert list(after.hits[: len(scored)]) == scored
    assert scored == sorted(scored, key=lambda it: (-it.score, it.chunk_id))
    assert [it.chunk_id for it in after.hits[len(scored) :]] == [
        it.chunk_id for it in hits if it.chunk_id not in {one.chunk_id for one in scored}
    ]
    for it in scored:
        assert sum(it.contributions.values()) == pytest.approx(it.score)
        assert set(it.contributions) == ({"rerank"} if it.provider == CROSS else {"semantic", "bm25"})


def state_of():
    from retrieval.engine.state import SearchState
    from tests.retrieval.conftest import NOW, connection, scope

    return SearchState(
        query=Query("rollback", "rollback"),
        scope=scope(connection()),
        deadline=Deadline.after(60.0, Clock()),
        now=NOW,
        top_k=10,
    )


def test_ids_break_ties_and_not_the_order_before():
    assert chunk_id(1) < chunk_id(2)
    cross_encoder = CrossEncoder()
    cross_encoder.does = lambda texts: [0.5] * len(texts)
    guards = RerankGuards()
    stage = RerankSection(RerankPlanConfig(), SemanticBm25Config(), _cross(cross_encoder, guards), guards.figures)
    assert numbers(stage(sectioned(state_of(), reversed(pool(4))))) == [1, 2, 3, 4]
