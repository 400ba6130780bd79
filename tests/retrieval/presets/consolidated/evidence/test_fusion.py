import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.presets.consolidated.evidence.scoring import ranking_weights
from retrieval.presets.consolidated.stages.fuse import PrimaryConfig
from retrieval.ranking.fusion import reciprocal_rank_fusion, weighted_rank_fusion
from tests.retrieval.presets.consolidated.evidence.conftest import numbers, typed

RANKINGS = st.dictionaries(
    st.sampled_from(("dense", "bm25")),
    st.lists(st.integers(1, 15), unique=True).map(lambda found: tuple(typed(number) for number in found)),
)


def test_a_rank_among_vectors_counts_seventy_and_one_among_words_thirty():
    legs = {"dense": (typed(1), typed(2)), "bm25": (typed(3), typed(2))}
    fused = weighted_rank_fusion(legs, ranking_weights(legs, PrimaryConfig().sparse_weight), rank_constant=60)
    assert numbers(fused) == [2, 1, 3]
    # 0.7 / 62 + 0.3 / 62, 0.7 / 61, 0.3 / 61
    assert [it.score for it in fused] == pytest.approx([1 / 62, 0.7 / 61, 0.3 / 61])
    assert fused[0].signals["rrf"] == fused[0].score


def test_a_leg_without_a_weight_counts_nothing():
    rankings = {"graph": (typed(1),)}
    (only,) = weighted_rank_fusion(rankings, ranking_weights(rankings, 0.3), rank_constant=60)
    assert only.score == 0


@given(RANKINGS)
def test_equal_weights_order_as_without_any(rankings):
    plain = reciprocal_rank_fusion(rankings, rank_constant=60)
    weighted = weighted_rank_fusion(rankings, ranking_weights(rankings, 0.5), rank_constant=60)
    assert {it.chunk_id: round(2 * it.score, 12) for it in weighted} == {
        it.chunk_id: round(it.score, 12) for it in plain
    }
