"""Stored vectors of tokens and sentences: one bit per component around their mean, scored by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.encoders.compressed_vectors import MAX_TOKENS, CompressedVectors, max_sims, merge, products
from retrieval.encoders.late_interaction import max_sim
from retrieval.encoders.pooling import unit_length

DIM = 384


def random_units(count, dim=DIM, seed=1):
    return unit_length(np.random.default_rng(seed).standard_normal((count, dim)).astype(np.float32))


def whole(found):
    """Return the vectors as they are after compression."""
    signs = 2.0 * np.unpackbits(found.bits, axis=1, count=len(found.mean)) - 1
    return found.step * found.mean + found.scales[:, None] * signs


def test_a_vector_is_the_mean_and_a_step_up_or_down_in_each_component():
    found = CompressedVectors.of(np.array([[0.6, 0.8, 0], [0, 0, 1]], np.float32))
    # The mean is (0.3, 0.4, 0.5), in steps of 0.5 / 127. The first vector is (0.3, 0.4, -0.5) from it, the second
    # opposite: (0.09 + 0.16 + 0.25) / (0.3 + 0.4 + 0.5) = 0.4167.
    assert found.step == pytest.approx(0.5 / 127, rel=1e-3)
    assert found.mean.tolist() == [76, 102, 127]
    assert found.scales == pytest.approx([0.4167, 0.4167], abs=2e-3)
    assert whole(found) == pytest.approx(np.array([[0.717, 0.817, 0.083], [-0.117, -0.017, 0.917]]), abs=4e-3)
    # Best inner products of (1, 0, 0) and (0, 0, 1): 0.717 and 0.917.
    (score,) = max_sims(np.array([[1, 0, 0], [0, 0, 1]], np.float32), [found])
    assert score == pytest.approx(0.817, abs=4e-3)


def test_what_remains_of_a_vector_has_its_own_length_along_itself():
    vectors = random_units(20)
    found = CompressedVectors.of(vectors)
    rest = vectors - found.step * found.mean
    kept = (rest * (whole(found) - found.step * found.mean)).sum(axis=1)
    assert kept == pytest.approx((rest**2).sum(axis=1), rel=1e-3)


def test_scores_are_the_best_inner_products_with_the_compressed_vectors_of_each_text():
    query = random_units(5, seed=2)
    texts = [CompressedVectors.of_tokens(random_units(count, seed=count)) for count in (3, 0, 1, 90)]
    expected = [max_sim(query, whole(it).astype(np.float32)) for it in texts]
    assert max_sims(query, texts) == pytest.approx(expected, abs=1e-5)
    assert max_sims(query[:0], texts) == [0.0] * 4
    assert max_sims(query, []) == []


def test_products_are_those_with_the_compressed_vectors():
    found, (query,) = CompressedVectors.of(random_units(90)), random_units(1, seed=2)
    assert products(query, found) == pytest.approx(whole(found) @ query, abs=1e-5)


def test_a_text_takes_at_most_four_kilobytes_and_is_read_again():
    found = CompressedVectors.of_tokens(random_units(300))
    stored = found.to_bytes()
    # The mean of a half float and 384 bytes, and 72 vectors of a half float and 384 bits.
    assert len(stored) == 2 + DIM + MAX_TOKENS * (2 + DIM // 8) == 3986
    read = CompressedVectors.read(stored, DIM)
    assert (read.step, read.mean.tolist()) == (found.step, found.mean.tolist())
    assert read.scales.tolist() == found.scales.tolist()
    assert read.bits.tolist() == found.bits.tolist()
    assert CompressedVectors.read(CompressedVectors.of(random_units(0)).to_bytes(), DIM).bits.shape == (0, DIM // 8)
    with pytest.raises(ValueError, match="384 components"):
        CompressedVectors.read(stored[:-1], DIM)


def test_the_nearest_are_merged_first():
    vectors = unit_length(np.array([[1, 0], [1, 0.1], [0, 1], [1, 0.2]], np.float32))
    first, second = sorted(merge(vectors, 2).tolist(), reverse=True)
    # Those near (1, 0.1) become their mean at unit length; the one across stays alone.
    assert first == pytest.approx(unit_length(vectors[[0, 1, 3]].sum(axis=0)).tolist(), abs=1e-6)
    assert second == pytest.approx([0, 1])
    assert merge(vectors, 4) is vectors


@given(st.integers(1, 40), st.integers(1, 20))
def test_so_many_unit_vectors_are_left(count, limit):
    merged = merge(random_units(count, 8, seed=count), limit)
    assert len(merged) == min(count, limit)
    assert np.linalg.norm(merged, axis=1) == pytest.approx(1, abs=1e-5)


def test_clusters_are_those_of_wards_criterion():
    hierarchy = pytest.importorskip("scipy.cluster.hierarchy")
    vectors = random_units(40, 12)
    labels = hierarchy.fcluster(hierarchy.linkage(vectors, "ward"), 7, "maxclust")
    expected = unit_length(np.stack([vectors[labels == label].sum(axis=0) for label in np.unique(labels)]))
    np.testing.assert_allclose(sorted(merge(vectors, 7).tolist()), sorted(expected.tolist()), atol=1e-5)
