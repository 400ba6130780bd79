"""Lifting a pool, worked out by hand."""

from uuid import UUID

import pytest

from retrieval.engine.types import ChunkId, Hit, ScoreType, Term
from retrieval.graph.links import LINK, SHARED_NAME, Edge
from retrieval.graph.question import NamedDocument
from retrieval.presets.helix.expansion import (
    Entry,
    Expansion,
    GraphConfig,
    lifted,
    min_cosine,
    seeds_of,
    sentence_match,
)
from retrieval.presets.helix.stages.expand import fused_scores

A, B, C, D = (ChunkId(UUID(int=number), 0) for number in (1, 2, 3, 4))
#: z at which the relation counts three quarters.
NEUTRAL = 2.0


def hit(chunk, score=0.0):
    return Hit(chunk, score, ScoreType.RRF)


def link(source, target, weight=1.0, sentence="", kind=LINK):
    return Edge(source, target.document_id, kind, "Name", weight, sentence)


def entries(*chunks, z=NEUTRAL):
    return {chunk.document_id: Entry(chunk, z, 0.5) for chunk in chunks}


def named(chunk):
    return NamedDocument(chunk.document_id, "Name", 0, 4)


def test_the_fused_score_is_six_tenths_of_the_cosine_and_four_of_the_words():
    rankings = {"dense": (hit(A, 0.8), hit(B, 0.7), hit(C, 0.6)), "bm25": (hit(B, 9.0), hit(D, 3.0))}
    # A: 0.6 x 1; B: 0.6 x 0.5 + 0.4 x 1; C and D are the least of their legs.
    assert fused_scores(rankings) == {A: 0.6, B: pytest.approx(0.7), C: 0.0, D: 0.0}
    assert fused_scores({"bm25": (hit(A, 2.0),), "dense": ()}) == {A: 1.0}
    assert fused_scores({}) == {}


def test_other_ways_to_put_the_question_share_what_their_side_counts():
    rankings = {
        "dense": (hit(A, 0.8), hit(C, 0.6)),
        "dense_2": (hit(B, 0.9), hit(C, 0.1)),
        "bm25": (hit(D, 3.0), hit(C, 1.0)),
        "bm25_2": (),
    }
    # 0.6 is shared by two rankings of vectors, 0.4 is of the only one of words that found something.
    assert fused_scores(rankings) == {A: 0.3, B: 0.3, C: 0.0, D: 0.4}
    assert fused_scores({"dense": (hit(A, 1.0),), "dense_2": (hit(B, 1.0),)}) == {A: 0.5, B: 0.5}


def test_named_documents_and_the_best_hits_are_seeds():
    seeds = seeds_of({A: 0.5, B: 0.25, C: 0.1, D: 0.0}, [named(D)], GraphConfig(top_seeds=2))
    assert seeds == {D.document_id: 1.0, A.document_id: pytest.approx(0.8), B.document_id: pytest.approx(0.4)}


def test_a_link_adds_its_evidence_to_the_fused_score():
    given = Expansion({A: 1.0, B: 0.2}, seeds={A.document_id: 0.8}, edges=[link(A, B)], entries=entries(B))
    found = {it.chunk_id: it for it in lifted((hit(A), hit(B)), given, GraphConfig())}
    # Seed 0.8 x relation 0.75 x 0.5 for a sentence that has none of the question's words.
    assert found[B].contributions == {"fused": 0.2, "graph": pytest.approx(0.8 * 0.75 * 0.5)}
    assert found[A].contributions == {"fused": 1.0}
    assert found[B].lifts[0].source == A


def test_what_links_lead_to_enters_the_pool():
    given = Expansion({A: 1.0}, seeds={A.document_id: 0.8}, edges=[link(A, B)], entries=entries(B))
    assert [it.chunk_id for it in lifted((hit(A),), given, GraphConfig())] == [A, B]


def test_a_target_without_a_chunk_in_scope_stays_out():
    given = Expansion({A: 1.0}, seeds={A.document_id: 0.8}, edges=[link(A, B)])
    assert [it.chunk_id for it in lifted((hit(A),), given, GraphConfig())] == [A]


def test_the_bridge_of_a_named_document_sits_before_better_scores():
    given = Expansion(
        {A: 1.0, B: 0.9, C: 0.0, D: 0.0},
        named=[named(C)],
        seeds={C.document_id: 1.0, A.document_id: 0.8},
        edges=[link(C, D, 0.3, kind=SHARED_NAME)],
        entries=entries(C, D),
        cosines={A.document_id: 0.8, C.document_id: 0.7},
        mean_cosine=0.4,
    )
    hits = lifted((hit(A), hit(B), hit(C), hit(D)), given, GraphConfig())
    assert [it.chunk_id for it in hits] == [C, D, A, B]
    assert [it.signals.get("seat") for it in hits] == [1, 2, None, None]
    assert all(sum(it.contributions.values()) == pytest.approx(it.score) for it in hits)


@pytest.mark.parametrize(("cosine", "is_first"), [(0.61, True), (0.59, False), (None, False)])
def test_a_named_document_sits_first_only_by_its_own_similarity(cosine, is_first):
    # Half of the way from the mean of 0.4 to the best of 0.8.
    given = Expansion(
        {A: 1.0, B: 0.1},
        named=[named(B)],
        seeds={A.document_id: 0.8, B.document_id: 1.0},
        edges=[link(B, C)],
        entries=entries(C),
        cosines={A.document_id: 0.8} | ({} if cosine is None else {B.document_id: cosine}),
        mean_cosine=0.4,
    )
    hits = lifted((hit(A), hit(B)), given, GraphConfig(seat_share=0.5))
    assert [it.chunk_id for it in hits] == ([B, C, A] if is_first else [A, B])
    # Neither is it lifted, nor do its links lead anywhere.
    assert any(it.lifts for it in hits) is is_first


def test_without_the_mean_of_the_scope_the_lowest_cosine_takes_its_place():
    assert min_cosine([0.5, 0.7], 0.3, 0.5) == pytest.approx(0.5)
    assert min_cosine([0.5, 0.7], None, 0.5) == pytest.approx(0.6)
    assert min_cosine([], None, 0.5) == 0.0


def test_a_cut_subgraph_is_walked_breadth_first():
    edges = [link(A, B), link(A, C)]
    given = Expansion({A: 1.0}, seeds={A.document_id: 1.0}, edges=edges, entries=entries(B, C), is_cut=True)
    (_, one, other) = lifted((hit(A),), given, GraphConfig(top_seeds=1))
    # Each link in full; PageRank would share the seed's mass between them.
    assert one.score == other.score == pytest.approx(0.75 * 0.5)


def test_the_walk_adds_no_more_than_its_most():
    given = Expansion({A: 1.0}, seeds={A.document_id: 1.0}, edges=[link(A, B)], entries=entries(B, z=1000.0))
    found = lifted((hit(A),), given, GraphConfig(max_mass=0.1))
    assert found[1].score == pytest.approx(0.1)


def test_a_sentence_matches_by_its_rarest_words():
    terms = [Term("dismiss", 5, 3.0), Term("year", 50, 1.0)]
    assert sentence_match("He was dismissed in Rome.", terms) == pytest.approx(0.75)
    assert sentence_match("He was dismissed that year.", terms) == 1.0
    assert sentence_match("Nothing.", terms) == 0.0
    assert sentence_match("Nothing.", []) == 0.0
