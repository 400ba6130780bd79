"""Bars as numbers."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from explorer.components.bars import BarPart, percent, score_bar, stacked
from retrieval.engine.types import ScoreType


def test_parts_follow_each_other_on_one_scale():
    assert stacked({"dense": 0.5, "fulltext": 0.25}, full=1.0) == (
        BarPart("dense", 0.0, 50.0),
        BarPart("fulltext", 50.0, 25.0),
    )


def test_a_part_of_nothing_is_left_out():
    assert stacked({"dense": 0.0, "freshness": 0.1}, full=1.0) == (BarPart("freshness", 0.0, 10.0),)


def test_the_part_of_a_leg_that_did_not_return_the_hit_is_marked(finished):
    only_dense = finished.hits[2]
    bar = score_bar(only_dense, legs=frozenset({"dense", "fulltext"}), full=1.0)
    assert [(part.signal, part.absent) for part in bar] == [("dense", False), ("fulltext", True), ("freshness", False)]


@pytest.mark.parametrize(
    ("score", "score_type", "width"),
    [(0.0, ScoreType.LOGIT, 50.0), (-800.0, ScoreType.LOGIT, None), (0.9, ScoreType.RELEVANCE, 90.0)],
)
def test_a_rerankers_own_score_is_a_share_of_the_whole_bar(finished, score, score_type, width):
    hit = replace(finished.hits[0], score=score, score_type=score_type, contributions={"rerank": score})
    bar = score_bar(hit, legs=frozenset({"dense", "fulltext"}), full=1.0)
    assert bar == (() if width is None else (BarPart("rerank", 0.0, width),))


def test_late_interaction_makes_the_whole_bar_longer(finished):
    hit = finished.hits[0]
    hit = replace(hit, score_type=ScoreType.MAXSIM, contributions={**hit.contributions, "rerank": 0.3})
    # 0.3 of 1.5
    assert score_bar(hit, legs=frozenset(), full=1.0)[-1].width == 20.0


def test_meaning_and_words_have_the_colours_of_their_legs(finished):
    hit = replace(finished.hits[0], ranks={"dense": 1}, contributions={"semantic": 0.5, "bm25": 0.25})
    bar = score_bar(hit, legs=frozenset({"dense", "bm25"}), full=1.0)
    assert bar == (BarPart("dense", 0.0, 50.0), BarPart("fulltext", 50.0, 25.0, absent=True))


@pytest.mark.parametrize(("value", "whole", "share"), [(1, 4, 25.0), (5, 4, 100.0), (-1, 4, 0.0), (1, 0, 0.0)])
def test_a_share_stays_between_nothing_and_all(value, whole, share):
    assert percent(value, whole) == share


@given(st.dictionaries(st.text(max_size=3), st.floats(0, 10), max_size=6), st.floats(0.01, 5))
def test_a_bar_never_passes_its_end(parts, whole):
    assert sum(part.width for part in stacked(parts, full=whole)) <= 100.05
