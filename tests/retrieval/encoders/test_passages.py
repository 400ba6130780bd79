"""Which passages share a run, and how their tokens are pooled."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.encoders.pooling import shortened, span_pooling, windows


def test_passages_fill_runs_in_order():
    found = windows([3, 4, 5, 10, 2], 10)
    assert [it.places for it in found] == [[0, 1], [2], [3], [4]]
    assert [it.spans for it in found] == [[(0, 3), (3, 7)], [(0, 5)], [(0, 10)], [(0, 2)]]


@pytest.mark.parametrize(("length", "room"), [(1, 0), (6, 5)])
def test_no_room_is_an_error(length, room):
    with pytest.raises(ValueError, match="room must be positive"):
        windows([length], room)


@given(st.lists(st.integers(0, 20)), st.integers(20, 40))
def test_every_passage_has_one_place_within_the_room(lengths, room):
    found = windows(lengths, room)
    assert [place for window in found for place in window.places] == list(range(len(lengths)))
    for window in found:
        assert window.spans[-1][1] <= room
        for place, (first, end) in zip(window.places, window.spans, strict=True):
            assert end - first == lengths[place]


def test_a_span_is_pooled_to_its_mean():
    states = np.array([[1, 0], [2, 0], [0, 9]], np.float32)
    assert span_pooling(states, [(0, 2), (2, 3), (1, 1)]).tolist() == [[1.5, 0], [0, 9], [1, 3]]


def test_a_shortened_vector_has_unit_length_again():
    vectors = np.array([[0.6, 0, 0.8], [0, 0.5, 0.866]], np.float32)
    assert shortened(vectors, 2).tolist() == [[1, 0], [0, 1]]
    assert shortened(vectors, 3) is vectors
