import pytest
from hypothesis import given
from hypothesis import strategies as st

from corecube.errors import ConfigError
from retrieval.engine.types import ScoreType
from retrieval.presets.consolidated.evidence.order import PrecedenceConfig, boosts, by_precedence
from retrieval.ranking.blend import on_unit_scale
from tests.retrieval.presets.consolidated.evidence.conftest import TYPES, numbers, type_of, typed

CONFIG = PrecedenceConfig()
MEMO = ("user", "excel", "costar", "pdf")


def ordered(*hits, is_fallback=False):
    table = boosts(MEMO, is_fallback=is_fallback, config=CONFIG)
    return by_precedence(hits, lambda it: table.get(type_of(it), 0.0))


def test_the_boosts_fall_evenly_to_nothing():
    table = boosts(MEMO, is_fallback=False, config=CONFIG)
    assert table == pytest.approx({"user": 0.004, "excel": 0.004 * 2 / 3, "costar": 0.004 / 3, "pdf": 0.0})
    halved = boosts(MEMO, is_fallback=True, config=CONFIG)
    assert halved == pytest.approx({name: boost / 2 for name, boost in table.items()})
    assert boosts(("pdf",), is_fallback=False, config=CONFIG) == {"pdf": 0.0}
    assert boosts((), is_fallback=False, config=CONFIG) == {}


def test_a_near_tie_goes_to_the_more_believed_and_a_real_lead_stands():
    assert numbers(ordered(typed(1, "pdf", 0.850), typed(2, "excel", 0.851))) == [2, 1]
    assert numbers(ordered(typed(1, "pdf", 0.850), typed(2, "excel", 0.849))) == [2, 1]
    assert numbers(ordered(typed(1, "pdf", 0.95), typed(2, "excel", 0.85))) == [1, 2]


def test_the_fallbacks_boost_is_half():
    pair = (typed(1, "pdf", 0.250), typed(2, "excel", 0.248))
    assert numbers(ordered(*pair)) == [2, 1]
    assert numbers(ordered(*pair, is_fallback=True)) == [1, 2]


def test_scores_stay_and_the_boost_is_shown():
    (only,) = ordered(typed(1, "user", 0.9))
    assert (only.score, only.signals["precedence"]) == (0.9, 0.004)


def test_logits_are_compared_as_shares():
    # Logistic 0.9526 and 0.9534; by the raw 0.02 nothing as small as a boost could turn them.
    close = (typed(1, "pdf", 3.02, kind=ScoreType.LOGIT), typed(2, "excel", 3.00, kind=ScoreType.LOGIT))
    assert numbers(ordered(*close)) == [2, 1]


def test_the_greatest_boost_stays_below_a_lead_that_means_something():
    with pytest.raises(ConfigError, match="limit must not exceed min_margin"):
        PrecedenceConfig(limit=0.006)
    assert CONFIG.limit < CONFIG.min_margin


@given(st.lists(st.tuples(st.sampled_from((*TYPES, "user")), st.floats(0, 1)), max_size=20), st.booleans())
def test_nobody_who_leads_by_the_smallest_margin_is_overtaken(rows, is_fallback):
    hits = sorted((typed(number, kind, score) for number, (kind, score) in enumerate(rows)), key=lambda it: -it.score)
    done = ordered(*hits, is_fallback=is_fallback)
    assert sorted(numbers(done)) == sorted(numbers(hits))
    for place, it in enumerate(done):
        assert all(on_unit_scale(later) - on_unit_scale(it) < CONFIG.min_margin for later in done[place:])
