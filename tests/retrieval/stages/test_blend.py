from dataclasses import replace

import pytest

from retrieval.ranking.blend import BlendConfig
from retrieval.stages.blend import Blend
from tests.retrieval.conftest import chunk_id, hit


def test_the_trace_tells_the_weights_that_the_query_got(state):
    pool = (hit(1, cosine=0.9, fulltext=1.0), *(hit(n, cosine=0.8, fulltext=0.0) for n in range(2, 12)))
    after = Blend(BlendConfig())(replace(state, hits=pool))
    assert after.hits[0].chunk_id == chunk_id(1)
    assert after.hits[0].contributions["dense"] + after.hits[0].contributions["fulltext"] == pytest.approx(0.9)
    assert sum(after.weights.values()) == pytest.approx(1.0)
    assert after.hits[0].contributions["fulltext"] == pytest.approx(after.weights["fulltext"])
    (note,) = after.notes
    assert note.code == "blend_weights"
    assert "by 0.090: vectors weigh 0.66, full text 0.24." in note.text


def test_fixed_weights_are_a_shift_of_0(state):
    pool = (hit(1, cosine=0.9, fulltext=1.0), *(hit(n, cosine=0.8, fulltext=0.0) for n in range(2, 12)))
    after = Blend(BlendConfig(evidence_shift=0.0))(replace(state, hits=pool))
    assert dict(after.hits[0].contributions) == pytest.approx({"dense": 0.6, "fulltext": 0.3, "freshness": 0.0})


def test_a_leg_that_searched_alone_is_told_as_the_only_weight(state):
    pool = (hit(1, cosine=0.9, fulltext=1.0), hit(2, cosine=0.8, fulltext=2.0))
    after = Blend(BlendConfig())(replace(state, hits=pool, rankings={"fulltext": pool}))
    assert dict(after.weights) == pytest.approx({"fulltext": 0.9, "freshness": 0.1})
    assert after.hits[0].chunk_id == chunk_id(2)
    assert after.notes == ()


def test_a_leg_that_found_nothing_has_still_searched(state):
    pool = (hit(1, cosine=0.9, fulltext=1.0),)
    after = Blend(BlendConfig())(replace(state, hits=pool, rankings={"dense": (), "fulltext": pool}))
    assert set(after.weights) == {"dense", "fulltext", "freshness"}
