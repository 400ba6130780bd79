from dataclasses import replace

from retrieval.engine.state import DropReason
from retrieval.engine.types import ScoreType
from retrieval.stages.floor import Floor, FloorConfig
from tests.retrieval.conftest import chunk_id, hit


def of_type(number, score, score_type):
    return replace(hit(number, score), score_type=score_type)


def test_a_floor_belongs_to_its_score_type(state):
    hits = (of_type(1, 0.4, ScoreType.LOGIT), of_type(2, 0.4, ScoreType.BLEND), of_type(3, 0.2, ScoreType.BLEND))
    after = Floor(FloorConfig(blend=0.3, logit=1.0))(replace(state, hits=hits))
    assert [it.chunk_id for it in after.hits] == [chunk_id(2)]
    assert [(drop.chunk_id, drop.reason) for drop in after.drops] == [
        (chunk_id(1), DropReason.BELOW_FLOOR),
        (chunk_id(3), DropReason.BELOW_FLOOR),
    ]
    assert after.drops[0].detail == "logit 0.400, floor 1.000"
    assert after.drops[1].detail == "blend 0.200, floor 0.300"


def test_the_default_floors_keep_the_least_score_of_every_type(state):
    minimum = {ScoreType.BLEND: 0.0, ScoreType.LOGIT: -20.0, ScoreType.RELEVANCE: 0.0, ScoreType.MAXSIM: -1.0}
    hits = tuple(of_type(number, score, kind) for number, (kind, score) in enumerate(minimum.items()))
    assert Floor(FloorConfig())(replace(state, hits=hits)).hits == hits


def test_the_lowest_bound_keeps_a_score_beyond_it(state):
    hits = (of_type(1, -25.0, ScoreType.LOGIT),)
    assert Floor(FloorConfig())(replace(state, hits=hits)).hits == hits
    assert Floor(FloorConfig(logit=-19.0))(replace(state, hits=hits)).hits == ()
