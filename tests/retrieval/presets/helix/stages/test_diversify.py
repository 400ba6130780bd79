"""Ordering the head of a ranking by the vectors that were read of it."""

from dataclasses import replace

import numpy as np

from retrieval.engine.types import ScoreType
from retrieval.presets.helix.stages.diversify import Diversify, DiversifyConfig
from tests.retrieval.conftest import hit

EAST, NORTH, NOWHERE = [2.0, 0.0, 0.0], [0.0, 3.0, 0.0], []


def pointing(number, score, vector):
    """Return a hit with a vector, as it is stored."""
    made = hit(number, score)
    return replace(made, facts=replace(made.chunk, vector=np.array(vector, ">f2").tobytes()))


def order(state, *hits, **changes):
    """Return the hits' numbers as the stage orders them; plain MMR of relevance and cosine in halves."""
    after = Diversify(DiversifyConfig(min_cosine=0.0, **changes))(replace(state, hits=hits))
    return [it.chunk_id.document_id.int for it in after.hits], [note.text for note in after.notes]


def test_what_repeats_comes_behind_what_is_new(state):
    # Relevance 1, 0.9 and 0; the second repeats the first whole: 0.45 - 0.5 is less than the third's 0 - 0.
    hits = [pointing(1, 1.0, EAST), pointing(2, 0.9, EAST), pointing(3, 0.0, NORTH)]
    assert order(state, *hits) == ([1, 3, 2], ["2 of 3 hits changed rank."])


def test_what_has_no_vector_repeats_nothing(state):
    hits = [pointing(1, 1.0, EAST), pointing(2, 0.9, EAST), pointing(3, 0.0, NOWHERE)]
    assert order(state, *hits)[0] == [1, 3, 2]
    assert order(state, *(pointing(number, 1.0 - number / 10, NOWHERE) for number in range(3))) == ([0, 1, 2], [])


def test_only_the_head_is_compared(state):
    hits = [pointing(1, 1.0, EAST), pointing(2, 0.9, EAST), pointing(3, 0.0, NORTH)]
    assert order(state, *hits, depth=2)[0] == [1, 2, 3]


def test_what_a_reranker_has_not_seen_stays_behind_what_it_has(state):
    seen = [replace(it, score_type=ScoreType.LOGIT) for it in (pointing(1, 0.9, EAST), pointing(2, 0.8, EAST))]
    assert order(state, *seen, pointing(3, 0.7, NORTH))[0] == [1, 2, 3]


def test_relevance_alone_changes_nothing(state):
    hits = [pointing(1, 1.0, EAST), pointing(2, 0.9, EAST), pointing(3, 0.0, NORTH)]
    assert order(state, *hits, relevance=1.0) == ([1, 2, 3], [])


def test_selected_hits_keep_the_order_of_their_scores_and_the_rest_follows(state):
    # By similarity MMR takes 3, then 2 (north, 0.4), then 1, which repeats 3. Two are selected: 2 scores more than 3.
    places = {1: (0.9, EAST, 0.7), 2: (0.8, NORTH, 0.2), 3: (0.1, EAST, 1.0), 4: (0.0, EAST, 0.0)}
    hits = [
        replace(it, signals={"similarity": similarity})
        for number, (score, vector, similarity) in places.items()
        for it in [pointing(number, score, vector)]
    ]
    assert order(state, *hits, selected=2)[0] == [2, 3, 1, 4]
