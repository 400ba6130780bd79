import math
import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.engine.types import ScoreType
from retrieval.ranking.blend import BlendConfig, Weights, break_ties, freshness, idf, on_unit_scale, query_weights
from retrieval.ranking.blend import blend as blend_with
from tests.retrieval.conftest import chunk_id, hit


def test_idf_by_hand():
    # N = 10, df = 2: ln(1 + 8.5 / 2.5) = ln 4.4
    assert idf(2, 10) == pytest.approx(math.log(4.4))


@given(st.integers(0, 10_000), st.integers(0, 10_000))
def test_idf_is_never_negative_and_falls_with_the_document_frequency(df, size):
    assert 0.0 <= idf(df + 1, size) <= idf(df, size)


def test_freshness_halves_with_every_half_life():
    assert [freshness(age, 30.0) for age in (0, 30, 60)] == [1.0, 0.5, 0.25]
    assert freshness(-5, 30.0) == 1.0


@given(st.floats(0, 1e5), st.floats(0, 1e5), st.floats(0.01, 1e4))
def test_freshness_falls_with_age_within_0_and_1(age, more, half_life):
    assert 0.0 <= freshness(age + more, half_life) <= freshness(age, half_life) <= 1.0


def blend(hits, config):
    return blend_with(hits, query_weights(hits, config), config)


def test_blend_by_hand():
    hits = (
        hit(1, cosine=0.8, fulltext=1.0, freshness=1.0),
        hit(2, cosine=0.6, fulltext=3.0, freshness=0.5),
        hit(3, cosine=0.7, fulltext=2.0, freshness=0.0),
    )
    scores = {it.chunk_id: it for it in blend(hits, BlendConfig())}
    # 1: 0.6 x 1 + 0.3 x 0 + 0.1 x 1 = 0.70; 2: 0 + 0.3 + 0.05 = 0.35; 3: 0.3 + 0.15 + 0 = 0.45
    assert scores[chunk_id(1)].score == pytest.approx(0.70)
    assert scores[chunk_id(2)].score == pytest.approx(0.35)
    assert scores[chunk_id(3)].score == pytest.approx(0.45)
    assert dict(scores[chunk_id(2)].contributions) == pytest.approx({"dense": 0.0, "fulltext": 0.3, "freshness": 0.05})
    assert [it.chunk_id for it in blend(hits, BlendConfig())] == [chunk_id(1), chunk_id(3), chunk_id(2)]


def test_a_missing_signal_adds_nothing_and_does_not_stretch_the_others():
    hits = (hit(1, cosine=0.9), hit(2, cosine=0.5, fulltext=7.0), hit(3, cosine=0.7, fulltext=5.0))
    scores = {it.chunk_id: it.score for it in blend(hits, BlendConfig())}
    assert scores[chunk_id(1)] == pytest.approx(0.6)
    assert scores[chunk_id(3)] == pytest.approx(0.3)


def pool_with_standout(best, others):
    return (hit(1, cosine=best), *(hit(number, cosine=others) for number in range(2, 12)))


def test_a_vector_that_stands_out_takes_weight_from_full_text():
    # Mean of the best ten: (0.9 + 9 x 0.8) / 10 = 0.81, so it stands out by 0.09.
    # sqrt(0.06 / 0.09) = 0.8165; 0.3 x 0.8165 = 0.2449
    weights = query_weights(pool_with_standout(0.9, 0.8), BlendConfig())
    assert weights.standout == pytest.approx(0.09)
    assert weights.fulltext == pytest.approx(0.2449, abs=1e-4)
    assert weights.dense == pytest.approx(0.6551, abs=1e-4)


def test_the_vectors_take_no_more_than_the_shift_and_nothing_where_none_stands_out():
    # Mean of the best ten 0.1, standout 0.9: sqrt(0.06 / 0.9) = 0.26, held at 0.67.
    weights = query_weights(pool_with_standout(1.0, 0.0), BlendConfig())
    assert (weights.dense, weights.fulltext) == pytest.approx((0.699, 0.201))
    # Standout 0.045: below the typical one.
    weights = query_weights(pool_with_standout(0.85, 0.80), BlendConfig())
    assert (weights.dense, weights.fulltext) == pytest.approx((0.6, 0.3))


def test_a_small_pool_is_no_evidence():
    assert query_weights(pool_with_standout(0.9, 0.1)[:9], BlendConfig()) == Weights(0.6, 0.3, None)


@pytest.mark.parametrize(("leg", "order"), [("dense", [1, 3, 2]), ("fulltext", [2, 3, 1])])
def test_a_leg_that_searched_alone_counts_for_both(leg, order):
    hits = (hit(1, cosine=0.8, fulltext=1.0), hit(2, cosine=0.6, fulltext=3.0), hit(3, cosine=0.7, fulltext=2.0))
    weights = query_weights(hits, BlendConfig(), ran=[leg])
    blended = blend_with(hits, weights, BlendConfig())
    # 0.6 + 0.3 for the leg; best 1 x 0.9, middle 0.5 x 0.9, last 0.
    assert [it.chunk_id for it in blended] == [chunk_id(number) for number in order]
    assert [it.score for it in blended] == pytest.approx([0.9, 0.45, 0.0])
    assert set(blended[0].contributions) == {leg, "freshness"}


def test_rankings_of_both_legs_or_of_others_leave_the_weights_as_they_are():
    for ran in (["dense", "fulltext"], ["graph"], []):
        assert query_weights((), BlendConfig(), ran=ran) == Weights(0.6, 0.3, None)


@given(st.lists(st.floats(-1, 1), max_size=20), st.floats(0, 1), st.floats(0, 1), st.floats(0, 1))
def test_the_evidence_moves_weight_within_the_shift_and_loses_none(cosines, dense, fulltext, shift):
    config = BlendConfig(dense=dense, fulltext=fulltext, evidence_shift=shift)
    weights = query_weights(tuple(hit(number, cosine=it) for number, it in enumerate(cosines)), config)
    assert weights.dense + weights.fulltext == pytest.approx(dense + fulltext)
    assert (1 - shift) * fulltext - 1e-12 <= weights.fulltext <= fulltext


signals = st.fixed_dictionaries(
    {}, optional={"cosine": st.floats(-1, 1), "fulltext": st.floats(0, 50), "freshness": st.floats(0, 1)}
)


@given(st.lists(signals, max_size=25), st.randoms(use_true_random=False))
def test_blend_is_bounded_sums_its_parts_and_ignores_the_order_given(pool, shuffler: random.Random):
    hits = [hit(number, **values) for number, values in enumerate(pool)]
    blended = blend(tuple(hits), BlendConfig())
    assert all(0.0 <= it.score <= 1.0 + 1e-9 for it in blended)
    assert all(it.score == pytest.approx(sum(it.contributions.values())) for it in blended)
    assert [it.score for it in blended] == sorted((it.score for it in blended), reverse=True)
    shuffler.shuffle(hits)
    assert blend(tuple(hits), BlendConfig()) == blended


TRUST = {1: 1, 2: 2, 3: 3}


def trust(it):
    return TRUST[it.chunk.connection_id]


def test_the_more_trusted_wins_within_the_tolerance():
    hits = (hit(1, 0.900, connection_id=1), hit(2, 0.895, connection_id=3), hit(3, 0.889, connection_id=3))
    # 2 lies within 0.01 of 1 and is more trusted; 3 lies 0.011 below 1.
    assert [it.chunk_id for it in break_ties(hits, trust=trust, tolerance=0.01)] == [
        chunk_id(2),
        chunk_id(1),
        chunk_id(3),
    ]


@given(st.lists(st.tuples(st.floats(0, 1), st.integers(1, 3)), max_size=25))
def test_breaking_ties_permutes_and_never_lifts_a_hit_over_one_that_is_clearly_better(pool):
    hits = tuple(hit(n, score, connection_id=source) for n, (score, source) in enumerate(sorted(pool, reverse=True)))
    ordered = break_ties(hits, trust=trust, tolerance=0.01)
    assert sorted(it.chunk_id for it in ordered) == sorted(it.chunk_id for it in hits)
    best_below = 0.0
    for it in reversed(ordered):
        best_below = max(best_below, it.score)
        assert it.score >= best_below - 0.01


def logit(number, score, source):
    return replace(hit(number, score, connection_id=source), score_type=ScoreType.LOGIT)


def test_logits_are_compared_as_probabilities():
    # 1 / (1 + e^-6) = 0.9975 and 1 / (1 + e^-5) = 0.9933 lie within 0.01; 1 / (1 + e^-0.2) = 0.5498 and 0.5 do not.
    far_apart = (logit(1, 6.0, 1), logit(2, 5.0, 3))
    assert [it.chunk_id for it in break_ties(far_apart, trust=trust, tolerance=0.01)] == [chunk_id(2), chunk_id(1)]
    close = (logit(1, 0.2, 1), logit(2, 0.0, 3))
    assert break_ties(close, trust=trust, tolerance=0.01) == close
    assert on_unit_scale(logit(1, -1e9, 1)) == 0.0


def test_scores_of_different_types_never_tie():
    hits = (logit(1, 0.5, 1), hit(2, 0.62, connection_id=3))
    assert break_ties(hits, trust=trust, tolerance=0.2) == hits
