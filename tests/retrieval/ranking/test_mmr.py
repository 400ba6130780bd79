import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from retrieval.presets.helix.stages.diversify import marginal_order


def units(*rows):
    vectors = np.array(rows, np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def test_a_repetition_gives_way_to_what_is_new():
    vectors = units([1, 0], [1, 0], [0, 1])
    # After the first: the second is worth 0.5 x 0.9 - 0.5 x 1 = -0.05, the third 0.5 x 0.2 - 0 = 0.1.
    assert marginal_order([1.0, 0.9, 0.2], vectors, balance=0.5) == [0, 2, 1]


def test_relevance_alone_or_difference_alone():
    vectors = units([1, 0], [1, 0.1], [0, 1])
    assert marginal_order([0.2, 1.0, 0.5], vectors, balance=1.0) == [1, 2, 0]
    assert marginal_order([1.0, 0.9, 0.0], vectors, balance=0.0) == [0, 2, 1]


def test_a_common_subject_is_no_repetition():
    vectors = units([1, 0], [1, 0.6], [0, 1])
    # Their cosine is 0.857: below 0.9 it costs nothing.
    assert marginal_order([1.0, 0.9, 0.4], vectors, balance=0.5, min_cosine=0.9) == [0, 1, 2]
    assert marginal_order([1.0, 0.9, 0.4], vectors, balance=0.5, min_cosine=0.0) == [0, 2, 1]


def test_the_first_stay_where_they_are():
    vectors = units([1, 0], [1, 0], [0, 1], [1, 0])
    assert marginal_order([0.1, 0.2, 0.9, 1.0], vectors, balance=0.5, first=2) == [0, 1, 2, 3]


def test_a_hit_without_a_vector_repeats_nothing():
    vectors = np.array([[1, 0], [0, 0], [1, 0]], np.float32)
    assert marginal_order([1.0, 0.5, 0.6], vectors, balance=0.5) == [0, 1, 2]


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0.01, 1), st.floats(0.01, 1)), max_size=12), st.floats(0, 1))
def test_every_hit_is_taken_once(rows, balance):
    vectors = units(*[row[1:] for row in rows]) if rows else np.zeros((0, 2), np.float32)
    order = marginal_order([row[0] for row in rows], vectors, balance=balance)
    assert sorted(order) == list(range(len(rows)))
