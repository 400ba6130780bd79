"""The walk along links, worked out by hand."""

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.presets.helix.walk import (
    Step,
    best_steps,
    inverse_distances,
    pagerank,
    personalized_pagerank,
    relation_match,
    seated,
    traverse,
)

A, B, C, D = (UUID(int=number) for number in (1, 2, 3, 4))


def test_one_link_brings_its_evidence():
    # p = 0.5 v; the link brings 0.5 x 0.5 x 0.6, in units of 0.5 x 0.5.
    assert pagerank({A: 1.0}, [Step(A, B, 0.6)], damping=0.5, limit=1.0) == {B: pytest.approx(0.6)}


def test_a_seed_that_links_to_much_shares_its_mass():
    lifts = pagerank({A: 1.0}, [Step(A, B, 1.0), Step(A, C, 1.0)], damping=0.5, limit=1.0)
    assert lifts == {B: pytest.approx(0.5), C: pytest.approx(0.5)}


def test_mass_goes_on_and_fades():
    lifts = pagerank({A: 1.0}, [Step(A, B, 1.0), Step(B, C, 1.0)], damping=0.5, limit=1.0)
    assert lifts == {B: pytest.approx(1.0), C: pytest.approx(0.5)}


def test_links_of_two_seeds_add_up_to_no_more_than_the_most():
    steps = [Step(A, C, 0.8), Step(B, C, 0.8)]
    assert pagerank({A: 1.0, B: 0.5}, steps, damping=0.5, limit=2.0) == {C: pytest.approx(1.2)}
    assert pagerank({A: 1.0, B: 0.5}, steps, damping=0.5, limit=1.0) == {C: 1.0}


def test_the_fallback_takes_the_best_path_and_stops_after_its_hops():
    steps = [Step(A, B, 0.8), Step(B, C, 0.5), Step(A, C, 0.3), Step(C, D, 1.0)]
    assert traverse({A: 1.0}, steps, hops=1, limit=1.0) == {B: 0.8, C: 0.3}
    assert traverse({A: 1.0}, steps, hops=2, limit=1.0) == {B: 0.8, C: pytest.approx(0.4), D: 0.3}


def test_only_the_best_links_of_a_source_are_followed():
    steps = [Step(A, B, 0.1), Step(A, C, 0.3), Step(B, D, 0.2)]
    assert best_steps(steps, limit=1) == [Step(A, C, 0.3), Step(B, D, 0.2)]


def test_named_documents_sit_first_then_the_best_bridge_of_each():
    steps = [Step(A, C, 0.9), Step(B, C, 0.8), Step(B, D, 0.1)]
    assert seated([A, B], steps) == [A, B, C, D]
    assert seated([], steps) == []


@pytest.mark.parametrize(("z", "factor"), [(2.0, 0.75), (-1000.0, 0.5), (1000.0, 1.0)])
def test_a_link_never_loses_more_than_half_to_the_relation(z, factor):
    assert relation_match(z) == pytest.approx(factor)


nodes = st.sampled_from([A, B, C, D])
steps_given = st.lists(st.builds(Step, nodes, nodes, st.floats(0.01, 1.0)), max_size=8)


@given(st.dictionaries(nodes, st.floats(0.01, 1.0), max_size=3), steps_given)
def test_lifts_are_bounded_and_nothing_is_lifted_out_of_reach(seeds, steps):
    for lifts in (pagerank(seeds, steps, damping=0.5, limit=1.0), traverse(seeds, steps, hops=2, limit=1.0)):
        assert all(0 < lift <= 1.0 for lift in lifts.values())
        assert set(lifts) <= {step.target for step in steps}


@given(steps_given)
def test_the_sum_of_the_walk_is_personalized_pagerank(steps):
    """Agreement with networkx-free linear algebra: (I - dA')p = (1 - d)v."""
    import numpy as np

    order = [A, B, C, D]
    totals = {node: max(1.0, sum(step.evidence for step in steps if step.source == node)) for node in order}
    matrix = np.zeros((4, 4))
    for step in steps:
        matrix[order.index(step.source), order.index(step.target)] += step.evidence / totals[step.source]
    start = np.array([1.0, 0.0, 0.0, 0.0])
    mass = np.linalg.solve(np.eye(4) - 0.5 * matrix.T, 0.5 * start)
    came = (mass - 0.5 * start) / 0.25
    lifts = pagerank({A: 1.0}, steps, damping=0.5, limit=100.0)
    assert [lifts.get(node, 0.0) for node in order] == pytest.approx(list(came), abs=1e-4)


def test_the_whole_mass_of_pagerank_is_shared_by_hand():
    # Of A and B, linked both ways: a = 0.5 + 0.5 b and b = 0.5 a, so 2/3 and 1/3.
    found = personalized_pagerank({A: 3.0}, [Step(A, B, 0.2), Step(B, A, 0.2)], damping=0.5)
    assert found == {A: pytest.approx(2 / 3, abs=1e-5), B: pytest.approx(1 / 3, abs=1e-5)}
    # C has no step, so its mass returns to the seeds: a = 0.5 + 0.5 c, c = 0.5 a.
    assert personalized_pagerank({A: 1.0}, [Step(A, C, 1.0)], damping=0.5)[C] == pytest.approx(1 / 3, abs=1e-5)
    assert personalized_pagerank({A: 1.0, B: 3.0}, [], damping=0.5) == {A: 0.25, B: 0.75}


@given(st.dictionaries(nodes, st.floats(0.01, 1.0), min_size=1, max_size=3), steps_given)
def test_pagerank_sums_to_one_and_reaches_two_hops(seeds, steps):
    found = personalized_pagerank(seeds, steps, damping=0.5)
    assert sum(found.values()) == pytest.approx(1.0)
    reached = inverse_distances(seeds, steps, hops=2)
    assert all(found[node] > 0 for node in reached)


def test_distances_count_the_fewest_hops():
    steps = [Step(A, B, 0.1), Step(B, C, 0.9), Step(A, C, 0.1), Step(C, D, 1.0)]
    assert inverse_distances({A}, steps, hops=1) == {A: 1.0, B: 1.0, C: 1.0}
    assert inverse_distances({A}, steps, hops=2) == {A: 1.0, B: 1.0, C: 1.0, D: 0.5}
