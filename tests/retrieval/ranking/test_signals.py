import math
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corecube.scope import TrustLevel
from retrieval.engine.types import ScoreType
from retrieval.ranking.blend import Weights
from retrieval.ranking.fusion import min_max_known
from retrieval.ranking.signals import (
    SIGNALS,
    confidence,
    in_two_digits,
    last_read,
    last_touched,
    rank_by_signals,
    recency,
    similarity,
    with_fused,
    with_sparse,
    with_written,
)
from retrieval.stages.rerank import reranked
from tests.retrieval.conftest import NOW, hit

WEIGHTS = {"similarity": 0.4, "recency": 0.05, "salience": 0.2, "confidence": 0.2, "graph": 0.15}


def touched(**moments):
    return replace(hit(1).chunk, **moments)


def test_of_a_reading_only_the_day_may_be_known():
    read = touched(
        accessed_at=datetime(2026, 5, 3, 15, 20, tzinfo=UTC), modified_at=datetime(2026, 5, 3, 15, tzinfo=UTC)
    )
    assert last_touched(read, NOW, to_the_day=False) == read.accessed_at
    assert last_touched(read, NOW, to_the_day=True) == datetime(2026, 5, 4, tzinfo=UTC)
    abroad = touched(accessed_at=datetime(2026, 5, 4, 1, 30, tzinfo=timezone(timedelta(hours=2))))
    assert last_touched(abroad, NOW, to_the_day=True) == datetime(2026, 5, 4, tzinfo=UTC)


def test_a_reading_of_today_is_not_known_before_the_day_is_over():
    changed, before = datetime(2026, 4, 1, 9, tzinfo=UTC), datetime(2026, 5, 1, 8, tzinfo=UTC)
    today = datetime(2026, 5, 3, 15, 20, tzinfo=UTC)
    first, again = (
        touched(accessed_at=today, accessed_before=earlier, modified_at=changed) for earlier in (None, before)
    )
    evening, midnight = datetime(2026, 5, 3, 23, 59, tzinfo=UTC), datetime(2026, 5, 4, tzinfo=UTC)
    assert last_read(first, evening, to_the_day=True) is None
    assert last_touched(first, evening, to_the_day=True) == changed
    assert last_touched(again, evening, to_the_day=True) == datetime(2026, 5, 2, tzinfo=UTC)
    assert {last_touched(it, midnight, to_the_day=True) for it in (first, again)} == {midnight}
    assert last_touched(again, evening, to_the_day=False) == today


@pytest.mark.parametrize("to_the_day", [True, False])
def test_a_change_is_told_as_it_is(to_the_day):
    changed = touched(modified_at=datetime(2026, 5, 3, 15, 20, tzinfo=UTC))
    assert last_touched(changed, NOW, to_the_day=to_the_day) == changed.modified_at
    assert last_touched(replace(changed, modified_at=None), NOW, to_the_day=to_the_day) == changed.synced_at


@pytest.mark.parametrize(("value", "told"), [(12.64, 13), (0.1251, 0.13), (1.0, 1.0), (0.0, 0.0), (987.0, 990)])
def test_two_digits_are_told_of_a_number(value, told):
    assert in_two_digits(value) == told


def test_recency_falls_by_the_hour_from_the_last_access():
    assert recency(NOW, NOW, hourly_decay=0.995) == 1.0
    assert recency(NOW - timedelta(hours=1), NOW, hourly_decay=0.995) == pytest.approx(0.995)
    assert recency(NOW - timedelta(days=1), NOW, hourly_decay=0.5) == pytest.approx(0.5**24)
    assert recency(NOW + timedelta(days=9), NOW, hourly_decay=0.995) == 1.0


def test_confidence_is_trust_and_half_of_the_rest_for_a_confirmation():
    assert [confidence(trust, is_confirmed=False) for trust in TrustLevel] == pytest.approx([1 / 3, 2 / 3, 1])
    assert [confidence(trust, is_confirmed=True) for trust in TrustLevel] == pytest.approx([2 / 3, 5 / 6, 1])


def test_one_value_for_all_decides_nothing():
    assert min_max_known([0.7, None, 0.7]) == [0.0, None, 0.0]
    assert min_max_known([None, None]) == [None, None]
    assert min_max_known([]) == []


def test_a_range_below_the_least_span_is_not_blown_up():
    assert min_max_known([0.2, 0.3, None], min_span=1.0) == pytest.approx([0.0, 0.1, None])


def test_similarity_weighs_both_legs_signals_of_every_hit():
    hits = (hit(1, cosine=0.9, fulltext=2.0), hit(2, cosine=0.5, fulltext=4.0), hit(3, fulltext=3.0), hit(4))
    # Cosines become 1 and 0, full-text scores 0, 1 and 1/2.
    found = similarity(hits, Weights(0.6, 0.4, None), min_cosine_span=0.1)
    assert found == [pytest.approx(0.6), pytest.approx(0.4), pytest.approx(0.2), None]


def test_the_score_is_the_sum_of_the_weighed_signals():
    hits = (
        hit(1, similarity=1.0, recency=0.2, salience=0.1, confidence=1 / 3, graph=0.0),
        hit(2, similarity=0.0, recency=1.0, salience=0.9, confidence=1.0, graph=0.0),
    )
    ranked = rank_by_signals(hits, lambda _: WEIGHTS, min_spans={})
    # The second has 0.05 + 0.2 + 0.2 = 0.45, the first 0.4; the graph, the same for both, adds nothing.
    assert [it.chunk_id for it in ranked] == [hits[1].chunk_id, hits[0].chunk_id]
    assert [it.score for it in ranked] == pytest.approx([0.45, 0.4])
    assert ranked[0].contributions == pytest.approx(
        {"similarity": 0.0, "recency": 0.05, "salience": 0.2, "confidence": 0.2, "graph": 0.0}
    )


def test_seats_stand_before_every_score():
    hits = (
        hit(1, similarity=1.0),
        hit(2, similarity=0.0, seat=2),
        hit(3, similarity=0.1, seat=1),
        hit(4, similarity=0.5),
    )
    ranked = rank_by_signals(hits, lambda _: WEIGHTS, min_spans={})
    assert [it.chunk_id.document_id.int for it in ranked] == [3, 2, 1, 4]


_SIGNALS = st.dictionaries(st.sampled_from(SIGNALS), st.floats(0, 1), max_size=5)


@given(st.lists(_SIGNALS, max_size=8), st.floats(0, 1))
def test_contributions_sum_to_the_score_and_lie_within_the_weights(signals, span):
    hits = tuple(hit(number, **given) for number, given in enumerate(signals))
    ranked = rank_by_signals(hits, lambda _: WEIGHTS, min_spans=dict.fromkeys(SIGNALS, span))
    assert {it.chunk_id for it in ranked} == {it.chunk_id for it in hits}
    assert all(it.score == pytest.approx(math.fsum(it.contributions.values())) for it in ranked)
    assert all(-1e-9 <= part <= WEIGHTS[name] + 1e-9 for it in ranked for name, part in it.contributions.items())
    assert [it.score for it in ranked] == sorted((it.score for it in ranked), reverse=True)


def test_what_is_stale_and_important_is_not_buried_by_what_is_new():
    """For a fact, age counts little: a salient, trusted one that nobody read for months stays before a fresh aside."""
    old = hit(1, similarity=0.8, recency=0.0, salience=0.9, confidence=1.0)
    new = hit(2, similarity=0.75, recency=1.0, salience=0.3, confidence=1 / 3)
    spans = dict.fromkeys(("recency", "salience", "confidence"), 1.0)
    assert rank_by_signals((new, old), lambda _: WEIGHTS, min_spans=spans)[0].chunk_id == old.chunk_id


def test_the_sparse_leg_takes_its_share_of_similarity_by_hand():
    hits = (hit(1, sparse=4.0), hit(2, sparse=2.0), hit(3), hit(4, sparse=3.0))
    # The third was not returned: the middle of 0 and 2 is 1. Over 1 to 4 the scores are 1, 1/3, 0 and 2/3.
    found = with_sparse([0.5, 0.8, 0.2, None], hits, 0.3)
    assert found == pytest.approx([0.7 * 0.5 + 0.3, 0.7 * 0.8 + 0.1, 0.7 * 0.2, 0.3 * 2 / 3])


def test_without_a_sparse_score_similarity_stays():
    assert with_sparse([0.5, None], (hit(1), hit(2)), 0.3) == [0.5, None]


def test_a_seat_stays_under_a_reranker():
    hits = (hit(1, 0.2, seat=1), hit(2, 0.9), hit(3, 0.8))
    assert [it.chunk_id for it in reranked(hits, [0.1, 0.2, 0.9], ScoreType.MAXSIM, 0.5)] == [
        it.chunk_id for it in (hits[0], hits[2], hits[1])
    ]


def test_what_other_ways_to_put_it_find_counts_half_by_its_fused_score():
    hits = (hit(1, rrf=0.03), hit(2, rrf=0.05, variants=1.0), hit(3, rrf=0.04))
    assert with_fused([0.8, None, 0.2], hits) == pytest.approx([0.4, 0.5, 0.35])
    assert with_fused([0.8, 0.2], hits[:1] + hits[2:]) == [0.8, 0.2]


def test_similarity_can_be_the_fused_score_alone():
    # Over 0 to 0.05: what no leg found has 0.
    hits = (hit(1, rrf=0.05), hit(2, rrf=0.02), hit(3))
    assert with_fused([0.1, None, 0.9], hits, share=1.0) == pytest.approx([1.0, 0.4, 0.0])


def test_each_hit_can_have_its_own_weights():
    hits = (hit(1, similarity=1.0, recency=0.0), hit(2, similarity=0.0, recency=1.0))
    own = {hits[0].chunk_id: WEIGHTS | {"similarity": 0.3}, hits[1].chunk_id: WEIGHTS | {"recency": 0.5}}
    ranked = rank_by_signals(hits, lambda it: own[it.chunk_id], min_spans={})
    assert [(it.chunk_id, it.score) for it in ranked] == [(hits[1].chunk_id, 0.5), (hits[0].chunk_id, 0.3)]


def test_half_of_similarity_is_what_is_held_as_it_is_written():
    # (1 - 0.5) * similarity + 0.5 * held, by hand; what has no similarity can still hold it.
    assert with_written([0.8, 0.2, None], [0.0, 1.0, 0.5], share=0.5) == pytest.approx([0.4, 0.6, 0.25])


def test_similarity_stays_where_nobody_holds_what_is_written():
    assert with_written([0.8, None], [0.0, 0.0], share=0.5) == [0.8, None]
