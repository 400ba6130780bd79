import numpy as np
import pytest

from retrieval.engine.types import MemoryType
from retrieval.presets.helix.router.routes import (
    ROUTES,
    SKIP_ROUTES,
    Likeness,
    Router,
    shipped_examples,
    version_of,
    with_more,
)


def unit(*values):
    vector = np.array(values, np.float32)
    return vector / np.linalg.norm(vector)


@pytest.fixture
def router():
    """Three routes at right angles; what they have in common is their mean, (1/3, 1/3, 1/3)."""
    return Router.trained(
        {"greeting": unit(1, 0, 0)[None], "semantic": unit(0, 1, 0)[None], "search": unit(0, 0, 1)[None]}
    )


def test_a_question_is_compared_less_what_all_examples_share(router):
    # (1, 0, 0) less (1, 1, 1) / 3 is (2, -1, -1) / 3, of length sqrt(6) / 3; so are the others, and
    # (2, -1, -1) . (-1, 2, -1) / 6 = -3 / 6.
    found = router.likeness(unit(1, 0, 0)).by_route
    assert list(found) == ["greeting", "search", "semantic"]
    assert found["greeting"] == pytest.approx(1.0, abs=1e-6)
    assert found["semantic"] == pytest.approx(-0.5, abs=1e-6)


def test_a_centroid_is_the_mean_of_its_examples():
    router = Router.trained({"code": np.stack([unit(1, 1), unit(1, -1)]), "search": np.stack([unit(-1, 0)] * 2)})
    assert router.likeness(unit(1, 0)).nearest == "code"


@pytest.mark.parametrize(
    ("likeness", "skip"),
    [
        ({"greeting": 0.5, "search": 0.1}, "greeting"),
        ({"greeting": 0.39, "search": -0.5}, ""),
        ({"greeting": 0.9, "arithmetic": 0.85, "search": 0.61}, ""),
        ({"greeting": 0.9, "arithmetic": 0.85, "search": 0.5}, "greeting"),
        ({"semantic": 0.9, "greeting": 0.8}, ""),
        ({"greeting": 0.9}, "greeting"),
        ({}, ""),
    ],
)
def test_a_skip_must_be_like_and_clearly_nearer_than_all_that_searches(likeness, skip):
    assert Likeness(likeness).skip(minimum=0.4, margin=0.3) == skip


@pytest.mark.parametrize(
    ("likeness", "memory_type"),
    [
        ({"code": 0.5, "search": 0.4}, MemoryType.CODE),
        ({"code": 0.2}, None),
        ({"search": 0.9, "code": 0.8}, None),
        ({"greeting": 0.9}, None),
        ({}, None),
    ],
)
def test_a_memory_type_must_be_the_nearest_of_all_routes(likeness, memory_type):
    assert Likeness(likeness).memory_type(minimum=0.3) is memory_type


def test_every_route_is_shown_by_examples():
    examples = shipped_examples()
    assert set(examples) == set(ROUTES) - {"skip"}
    assert set(SKIP_ROUTES) - {"skip"} <= set(examples)
    assert all(len(texts) >= 8 and len(set(texts)) == len(texts) for texts in examples.values())


def test_the_version_changes_with_the_examples_and_not_with_their_order():
    one, other = {"skip": ["a", "b"], "code": ["c"]}, {"code": ["c"], "skip": ["b", "a"]}
    assert version_of(one) == version_of(other)
    assert version_of(with_more(one, [("skip", "c")])) != version_of(one)
    assert one == {"skip": ["a", "b"], "code": ["c"]}
