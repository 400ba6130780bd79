"""What stands beside the best hits, worked out by hand."""

from dataclasses import replace
from uuid import UUID

import pytest

from retrieval.engine.types import ChunkId, Hit, ScoreType
from retrieval.presets.helix.expansion import Expansion, GraphConfig, lifted
from retrieval.presets.helix.stages.expand import neighbours_of

DOCUMENT = UUID(int=1)
CONFIG = GraphConfig(top_seeds=2, next_share=0.3, section_share=0.1)


def at(ordinal):
    return ChunkId(DOCUMENT, ordinal)


def test_next_to_a_hit_and_in_its_section():
    found = neighbours_of({at(3): 0.8}, {at(3): (2, 5)}, CONFIG)
    # 0.3 x 0.8 beside it, 0.1 x 0.8 further away.
    assert {chunk.ordinal: (lift.kind, pytest.approx(lift.amount)) for chunk, lift in found.items()} == {
        2: ("next", 0.24),
        4: ("next", 0.24),
        5: ("section", 0.08),
    }
    assert {lift.source for lift in found.values()} == {at(3)}


def test_the_greatest_of_several_counts_and_few_hits_have_neighbours():
    scores = {at(0): 1.0, at(2): 0.5, at(9): 0.4}
    found = neighbours_of(scores, {at(0): (0, 2), at(2): (0, 2), at(9): (8, 9)}, CONFIG)
    assert {chunk.ordinal: lift.source.ordinal for chunk, lift in found.items()} == {0: 2, 1: 0, 2: 0}


def test_a_long_section_is_lifted_in_part():
    assert sorted(it.ordinal for it in neighbours_of({at(50): 1.0}, {at(50): (0, 99)}, CONFIG)) == [
        47, 48, 49, 51, 52, 53,
    ]  # fmt: skip


def test_without_a_share_or_a_section_nothing_is_lifted():
    assert neighbours_of({at(1): 1.0}, {at(1): (0, 2)}, replace(CONFIG, next_share=0.0, section_share=0.0)) == {}
    assert neighbours_of({at(1): 1.0}, {}, CONFIG) == {}


def test_a_neighbour_is_raised_or_comes_into_the_pool():
    scores = {at(0): 1.0, at(1): 0.2}
    beside = neighbours_of(scores, {at(0): (0, 2), at(1): (0, 2)}, CONFIG)
    pool = tuple(Hit(chunk, 0.0, ScoreType.RRF) for chunk in scores)
    hits = {hit.chunk_id.ordinal: hit for hit in lifted(pool, Expansion(scores, neighbours=beside), CONFIG)}
    assert hits[1].contributions == {"fused": 0.2, "graph": pytest.approx(0.3)}
    assert hits[2].contributions == {"fused": 0.0, "graph": pytest.approx(0.1)}
    assert hits[2].lifts[0].kind == "section"
    assert all(sum(hit.contributions.values()) == pytest.approx(hit.score) for hit in hits.values())
