"""Exact for the ranking and for admins; in few digits for everybody else."""

import uuid
from dataclasses import replace

import pytest

from retrieval.engine.state import Span
from retrieval.engine.types import ChunkId, Hit, Lift, Passage, ScoreType
from retrieval.presets.helix.stages.expand import fused_scores
from retrieval.search.service import round_for_viewer
from tests.retrieval.conftest import hit

EXACT = (13.42, 13.11, 12.64)


def found(scores=EXACT):
    ids = [ChunkId(uuid.UUID(int=place), 0) for place in range(len(scores))]
    return tuple(Hit(it, score, ScoreType.BM25, signals={"bm25": score}) for it, score in zip(ids, scores, strict=True))


def ranked():
    """Return a hit whose score rests on BM25 in part: 0.4 of likeness and what links add."""
    parts = {"similarity": 0.4, "graph": 0.0123456}
    signals = {"bm25": 12.64, "cosine": 0.812345, "graph": 0.0823456}
    lift = Lift("link", 0.0823456, "Queues")
    return replace(
        hit(1), score=0.4123456, score_type=ScoreType.SIGNALS, signals=signals, contributions=parts, lifts=(lift,)
    )


def searched(state, *, is_admin, legs):
    return replace(
        state,
        is_admin=is_admin,
        hits=(ranked(),),
        passages=(Passage(1, ranked(), "### [1]", 5),),
        rankings=dict.fromkeys(legs, found()),
        trace=(Span("bm25", 0.1, 0, 3, left=found()),),
    )


def test_near_scores_stay_apart_for_what_ranks_by_them():
    # Rounded before they are fused all three would be 13, and equal.
    assert list(fused_scores({"bm25": found()}).values()) == pytest.approx([1.0, 0.47 / 0.78, 0.0])


@pytest.mark.parametrize("leg", ["bm25", "bm25_2"])
def test_who_is_no_admin_is_told_few_digits_wherever_hits_are(state, leg):
    told = round_for_viewer(searched(state, is_admin=False, legs=("dense", leg)))
    for ranking in (told.rankings[leg], told.trace[0].left):
        assert [(it.score, it.signals) for it in ranking] == [(13.0, {"bm25": 13.0})] * 3
        assert [it.chunk_id for it in ranking] == [it.chunk_id for it in found()]
        assert [it.score for it in ranking[:2]] == [13.0] * 2
    for it in (told.hits[0], told.passages[0].hit):
        assert it.signals == {"bm25": 13.0, "cosine": 0.812345, "graph": 0.082}
        assert it.contributions == {"similarity": 0.4, "graph": 0.012}
        assert it.score == pytest.approx(0.412)
        assert it.lifts[0].amount == 0.082


def test_an_admin_is_told_all_and_so_is_whoever_searched_without_bm25(state):
    for is_admin, leg in ((True, "bm25"), (False, "fulltext")):
        done = searched(state, is_admin=is_admin, legs=("dense", leg))
        assert round_for_viewer(done) is done
