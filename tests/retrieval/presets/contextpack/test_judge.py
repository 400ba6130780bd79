"""Scores on the rubric's scale: judged ones, and others that are brought onto it and say so."""

import math
from dataclasses import replace

import pytest

from retrieval.engine.types import ScoreType
from retrieval.presets.contextpack.judge import (
    Relevance,
    RelevanceCache,
    judged_ranking,
    mapped_ranking,
    on_rubric_scale,
)
from retrieval.ranking.blend import BlendConfig
from tests.retrieval.conftest import chunk_id, hit

BLEND = BlendConfig()


def test_the_rubric_orders_and_the_blend_decides_among_equals():
    hits = (hit(1, 0.9), hit(2, 0.8), hit(3, 0.7), hit(4, 0.6))
    judged = {
        chunk_id(1): Relevance(70, is_answering=False),
        chunk_id(2): Relevance(100, is_answering=True, evidence="because"),
        chunk_id(4): Relevance(70, is_answering=False),
    }
    found = judged_ranking(hits, judged, BLEND)
    assert [(it.chunk_id, it.score, it.score_type) for it in found] == [
        (chunk_id(2), 100, ScoreType.RUBRIC),
        (chunk_id(1), 70, ScoreType.RUBRIC),
        (chunk_id(4), 70, ScoreType.RUBRIC),
        # The model left it out: of 100 the blend gives it 70, not more than what stands before it.
        (chunk_id(3), 70, ScoreType.MAPPED),
    ]
    assert found[0].signals == {"blend": 0.8, "rubric": 100, "answers": 1.0}
    assert found[0].contributions == {"rubric": 100}


def test_what_is_left_out_stands_before_what_is_unrelated_and_above_nothing_before_it():
    hits = tuple(replace(hit(number, 0.9 - number / 10), score_type=ScoreType.BLEND) for number in range(1, 6))
    judged = {chunk_id(1): Relevance(0, is_answering=False), chunk_id(5): Relevance(40, is_answering=False)}
    # 0.7, 0.6 and 0.5 of the blend would be 70, 60 and 50.
    assert [(it.chunk_id, it.score, it.score_type) for it in judged_ranking(hits, judged, BLEND)] == [
        (chunk_id(5), 40, ScoreType.RUBRIC),
        *[(chunk_id(number), 40, ScoreType.MAPPED) for number in (2, 3, 4)],
        (chunk_id(1), 0, ScoreType.RUBRIC),
    ]
    alone = judged_ranking(hits, {chunk_id(1): Relevance(0, is_answering=False)}, BLEND)
    assert [it.score for it in alone] == pytest.approx([70, 60, 50, 40, 0])


def test_two_kinds_of_scores_that_follow_each_other_fall():
    kinds = (ScoreType.LOGIT, ScoreType.BLEND, ScoreType.BLEND)
    hits = [replace(hit(1, score), score_type=kind) for score, kind in zip((0.0, 0.8, 0.3), kinds, strict=True)]
    assert [it.score for it in mapped_ranking(tuple(hits), BLEND)] == pytest.approx([50, 50, 30])


@pytest.mark.parametrize(
    ("score_type", "score", "mapped"),
    [
        (ScoreType.BLEND, 0.5, 50.0),
        (ScoreType.BLEND, 1.2, 100.0),
        (ScoreType.LOGIT, 0.0, 50.0),
        (ScoreType.LOGIT, 2.0, 100 / (1 + math.exp(-2))),
        (ScoreType.RELEVANCE, 0.25, 25.0),
        (ScoreType.RELEVANCE, -0.4, 0.0),
        (ScoreType.MAXSIM, 0.75, 50.0),
    ],
)
def test_another_score_is_brought_onto_the_scale(score_type, score, mapped):
    one = replace(hit(1, score), score_type=score_type)
    assert on_rubric_scale(one, 1.0) == pytest.approx(mapped)
    (found,) = mapped_ranking((one,), BLEND)
    assert (found.score_type, found.signals["mapped"]) == (ScoreType.MAPPED, pytest.approx(mapped))
    assert sum(found.contributions.values()) == found.score
    assert "rubric" not in found.signals


def test_a_reranked_hit_keeps_the_blends_own_score():
    reranked = replace(hit(1, 2.0, blend=0.4, rerank=2.0), score_type=ScoreType.LOGIT)
    (found,) = mapped_ranking((reranked,), BLEND)
    assert (found.signals["blend"], found.signals["rerank"]) == (0.4, 2.0)


def test_the_judgments_used_latest_are_kept():
    kept = RelevanceCache(2)
    for key in "abc":
        kept.put(key, {chunk_id(1): Relevance(40, is_answering=False)})
        kept.get("a")
    assert [kept.get(key) is not None for key in "abc"] == [True, False, True]
    assert len(kept) == 2
