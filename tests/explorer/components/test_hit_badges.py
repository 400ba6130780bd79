"""How a hit came to its place."""

from dataclasses import replace

from explorer.components.badges import hit_badges
from tests.explorer.conftest import FIRST


def badges(provider="", **signals):
    hit = replace(FIRST, provider=provider, signals={**FIRST.signals, **signals})
    return [(badge.text, badge.tone) for badge in hit_badges(hit)]


def test_a_hit_of_a_preset_without_sections_has_none():
    assert list(hit_badges(FIRST)) == []


def test_each_way_to_its_place_is_named():
    assert badges(recovered=1.0) == [("recovered", "good")]
    assert badges(beyond_filter=1.0) == [("beyond the filter", "warn")]
    assert badges(protected=14) == [("protected", "good")]
    assert badges(precedence=0.004) == [("type precedence +0.004", "")]
    assert badges(precedence=0.0) == []


def test_what_scored_it_is_named():
    assert badges("cross_encoder") == [("scored by cross-encoder", "")]
    assert badges("semantic_bm25") == [("scored by SemanticBM25", "")]
    assert badges("none") == [("not reranked", "")]
    assert badges("another_one") == [("scored by another one", "")]
