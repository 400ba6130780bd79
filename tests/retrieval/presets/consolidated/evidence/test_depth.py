from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corecube.errors import ConfigError
from retrieval.errors import OverridesError, TunablesError
from retrieval.presets.consolidated.evidence.depth import (
    DepthConfig,
    Health,
    adaptive_top_k,
    document_factor,
    health_of,
    over_fetched,
)

CONFIG = DepthConfig()


@pytest.mark.parametrize(
    ("documents", "factor"), [(0, 1.75), (1, 1.75), (2, 1.75), (3, 1.0), (10, 1.0), (11, 1.5), (5000, 1.5)]
)
def test_few_and_many_documents_ask_for_more(documents, factor):
    assert document_factor(documents, CONFIG) == factor


@pytest.mark.parametrize(
    ("complexity", "cap", "documents", "top_k"),
    [
        (28, 50, 2, 49),  # 28 * 1.75 = 49
        (28, 40, 2, 40),  # capped
        (30, 50, 1, 50),  # 52.5, capped
        (11, 40, 2, 20),  # 19.25, rounded up
        (11, 40, 5, 11),
        (11, 40, 11, 17),  # 16.5
        (6, 40, 5, 8),  # the floor
        (4, 40, 2, 8),  # 7, the floor
        (30, 50, 11, 45),
    ],
)
def test_top_k_by_hand(complexity, cap, documents, top_k):
    assert adaptive_top_k(complexity, cap=cap, documents=documents, config=CONFIG) == top_k


def test_a_weak_compartment_is_asked_for_more():
    asked = [adaptive_top_k(20, cap=50, documents=5, health=health, config=CONFIG) for health in Health]
    assert asked == [20, 25, 30]


def test_the_health_of_a_compartment():
    assert health_of(1000, is_failing=False, config=CONFIG) is Health.GOOD
    assert health_of(199, is_failing=False, config=CONFIG) is Health.SPARSE
    assert health_of(199, is_failing=True, config=CONFIG) is Health.DEGRADED


@given(
    st.integers(1, 100),
    st.integers(8, 200),
    st.integers(0, 100),
    st.sampled_from(Health),
    st.floats(1, 4),
    st.floats(1, 4),
)
def test_it_keeps_its_bounds_and_never_asks_for_less(complexity, cap, documents, health, sparse, degraded):
    config = replace(CONFIG, sparse_factor=sparse, degraded_factor=degraded)
    healthy = adaptive_top_k(complexity, cap=cap, documents=documents, config=config)
    top_k = adaptive_top_k(complexity, cap=cap, documents=documents, health=health, config=config)
    assert 8 <= healthy <= top_k <= cap
    assert top_k <= over_fetched(top_k, cap=cap, config=config) <= cap


def test_over_fetching_by_hand():
    assert over_fetched(20, cap=50, config=CONFIG) == 30
    assert over_fetched(11, cap=50, config=CONFIG) == 17
    assert over_fetched(40, cap=50, config=CONFIG) == 50
    assert over_fetched(50, cap=50, config=CONFIG) == 50


def test_over_fetching_beyond_the_limit_needs_the_limit_raised():
    assert replace(CONFIG, over_fetch=1.6).over_fetch == 1.6
    with pytest.raises(ConfigError, match="over_fetch must not exceed over_fetch_limit"):
        replace(CONFIG, over_fetch=1.61)
    with pytest.raises(TunablesError, match="over_fetch must not exceed"):
        CONFIG.with_values({"over_fetch": 1.7})
    assert CONFIG.with_values({"over_fetch": 1.7, "over_fetch_limit": 1.7}).over_fetch == 1.7
    with pytest.raises(OverridesError):
        CONFIG.with_overrides({"over_fetch": 1.7, "over_fetch_limit": 1.7})


@pytest.mark.parametrize("name", ["few_factor", "some_factor", "many_factor", "sparse_factor", "degraded_factor"])
def test_no_factor_can_ask_for_less(name):
    with pytest.raises(ConfigError):
        replace(CONFIG, **{name: 0.99})
