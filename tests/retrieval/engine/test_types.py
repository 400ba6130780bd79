"""Copies of hits."""

from dataclasses import fields, replace
from uuid import UUID

from retrieval.engine.types import ChunkId, Hit, ScoreType

#: A value of its own in every field, so that one that is not carried over shows.
HIT = replace(
    Hit(ChunkId(UUID(int=7), 3), 0.5, ScoreType.RRF),
    **{it.name: {it.name: 1} for it in fields(Hit) if it.name not in {"chunk_id", "score", "score_type"}},
)


def test_another_score_leaves_the_rest():
    found = HIT.scored(2.0, ScoreType.SIGNALS, {"graph": 2.0})
    assert found == replace(HIT, score=2.0, score_type=ScoreType.SIGNALS, contributions={"graph": 2.0})


def test_other_signals_leave_the_rest():
    assert HIT.with_signals({"cosine": 0.1}) == replace(HIT, signals={"cosine": 0.1})


def test_what_the_store_knows_leaves_the_rest():
    found = HIT.known("facts", {"cosine": 0.2}, ("match",))
    assert found == replace(HIT, facts="facts", signals={"cosine": 0.2}, matches=("match",))
