import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from retrieval.encoders.pooling import cls_pooling, length_sorted_batches, mean_pooling, pad, unit_length

STATES = np.array([[[1, 2], [3, 4], [5, 6]], [[7, 8], [9, 10], [90, 90]]], np.float32)
MASK = np.array([[1, 1, 1], [1, 1, 0]], np.int64)


def test_cls_pooling_takes_the_first_token():
    assert cls_pooling(STATES, MASK).tolist() == [[1, 2], [7, 8]]


def test_mean_pooling_leaves_padding_out():
    # Three tokens: 9 / 3 and 12 / 3; two tokens: 16 / 2 and 18 / 2.
    assert mean_pooling(STATES, MASK).tolist() == [[3, 4], [8, 9]]


def test_unit_length_divides_by_the_euclidean_length_and_leaves_zeros():
    vectors = unit_length(np.array([[3, 4], [0, 0]], np.float32))
    np.testing.assert_allclose(vectors, [[0.6, 0.8], [0, 0]], rtol=1e-6)
    assert vectors.dtype == np.float32


def test_padding_is_at_the_right_and_masked():
    ids, mask = pad([[5, 6, 7], [8]])
    assert ids.tolist() == [[5, 6, 7], [8, 0, 0]]
    assert mask.tolist() == [[1, 1, 1], [1, 0, 0]]


def test_batches_are_filled_longest_first_within_the_padded_budget():
    # 9 alone (9 x 2 > 12); 4 + 4 + 3 fill 4 x 3 = 12; 2 is left.
    assert length_sorted_batches([4, 2, 9, 3, 4], batch_tokens=12) == [[2], [0, 4, 3], [1]]


def test_without_a_budget_every_text_runs_alone():
    assert length_sorted_batches([1, 3, 2], batch_tokens=0) == [[1], [2], [0]]


def test_no_texts_make_no_batches():
    assert length_sorted_batches([], batch_tokens=100) == []


@given(st.lists(st.integers(2, 60)), st.integers(0, 200))
def test_batches_hold_every_text_once_and_keep_to_the_budget(lengths, budget):
    batches = length_sorted_batches(lengths, budget)
    assert sorted(position for batch in batches for position in batch) == list(range(len(lengths)))
    for batch in batches:
        assert len(batch) == 1 or max(lengths[position] for position in batch) * len(batch) <= budget
