import pytest
from hypothesis import given
from hypothesis import strategies as st

from corecube.errors import ConfigError
from retrieval.engine.types import ScoreType
from retrieval.presets.consolidated.evidence.scoring import SemanticBm25Config, semantic_bm25
from tests.retrieval.presets.consolidated.evidence.conftest import numbers, typed

CONFIG = SemanticBm25Config()


def scores(*hits, config=CONFIG):
    return {it.chunk_id.document_id.int: it.score for it in semantic_bm25(hits, config)}


def test_meaning_weighs_seventy_and_words_thirty():
    found = scores(typed(1, cosine=0.5, bm25=8.0), typed(2, cosine=0.6, bm25=4.0), typed(3, cosine=0.4))
    # 0.7 * 0.5 + 0.3 * 8/8, 0.7 * 0.6 + 0.3 * 4/8, 0.7 * 0.4
    assert found == pytest.approx({1: 0.65, 2: 0.57, 3: 0.28})


def test_the_weights_are_divided_by_their_sum():
    config = SemanticBm25Config(semantic=0.35, bm25=0.15)
    assert scores(typed(1, cosine=0.5, bm25=8.0), config=config) == pytest.approx({1: 0.65})


def test_a_signal_that_the_pool_lacks_is_left_out_of_the_sum():
    assert scores(typed(1, cosine=0.5), typed(2, cosine=0.25)) == pytest.approx({1: 0.5, 2: 0.25})
    assert scores(typed(1, bm25=3.0), typed(2, bm25=1.5)) == pytest.approx({1: 1.0, 2: 0.5})
    assert scores(typed(1), typed(2)) == {1: 0.0, 2: 0.0}


def test_the_best_come_first_and_the_parts_are_kept():
    hits = semantic_bm25((typed(2, cosine=0.2), typed(1, cosine=0.2), typed(3, cosine=-0.4)), CONFIG)
    assert numbers(hits) == [1, 2, 3]
    assert hits[0].contributions == {"semantic": 0.2, "bm25": 0.0}
    assert hits[0].score_type is ScoreType.BLEND
    assert hits[2].score == 0


def test_two_weights_of_nothing_are_refused():
    with pytest.raises(ConfigError):
        semantic_bm25((), SemanticBm25Config(semantic=0, bm25=0))


@given(st.lists(st.tuples(st.floats(-1, 1), st.floats(0, 50)), max_size=20))
def test_scores_are_shares_and_sums_of_their_parts(rows):
    for it in semantic_bm25(tuple(typed(n, cosine=c, bm25=b) for n, (c, b) in enumerate(rows)), CONFIG):
        assert 0 <= it.score <= 1 + 1e-9
        assert it.score == pytest.approx(sum(it.contributions.values()))
