from itertools import pairwise

import numpy as np
import pytest

from retrieval.evaluate.bench.synthesis import DIM, synthesis, unit, word


@pytest.fixture(scope="module")
def shared():
    return synthesis(chunks=2000, seed=0)


def test_the_same_seed_gives_the_same_documents(shared):
    first, again = list(shared.documents(3, 20)), list(synthesis(chunks=2000, seed=0).documents(3, 20))
    assert [it.texts for it in first] == [it.texts for it in again]
    assert all(np.array_equal(one.vectors, other.vectors) for one, other in zip(first, again, strict=True))


def test_another_seed_or_connection_gives_others(shared):
    titles = [next(it).title for it in (shared.documents(0, 4), shared.documents(1, 4))]
    titles.append(next(synthesis(chunks=2000, seed=1).documents(0, 4)).title)
    assert len(set(titles)) == 3


def test_a_connection_gets_exactly_its_chunks(shared):
    documents = list(shared.documents(0, 10))
    assert [len(it.texts) for it in documents] == [4, 4, 2]
    assert [it.vectors.shape for it in documents] == [(4, DIM), (4, DIM), (2, DIM)]


def test_vectors_have_length_one(shared):
    vectors = np.concatenate([it.vectors for it in shared.documents(0, 40)])
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(1, abs=1e-5)


def test_chunks_of_a_document_are_nearer_to_each_other_than_to_others(shared):
    documents = list(shared.documents(0, 200))
    inside = [it.vectors[0] @ it.vectors[1] for it in documents]
    between = [one.vectors[0] @ other.vectors[0] for one, other in pairwise(documents)]
    assert np.mean(inside) > 0.4
    assert np.mean(between) < 0.2


def test_texts_have_about_120_words_and_a_long_tail_of_rare_ones(shared):
    texts = [text.split() for it in shared.documents(0, 400) for text in it.texts]
    assert 110 < np.mean([len(text) for text in texts]) < 130
    assert 0.2 < np.mean([word(0) in text for text in texts]) < 0.5
    words = [one for text in texts for one in text]
    assert len(set(words)) > 5000


def test_every_place_of_the_vocabulary_has_a_word_of_its_own(shared):
    assert len(set(shared.vocabulary)) == len(shared.vocabulary) == 200_000


def test_words_are_made_of_syllables_and_an_ending():
    assert [word(place) for place in (0, 1, 52, 52**3)] == ["bababab", "bibabab", "babibab", "bababag"]


def test_unit_scales_each_vector():
    scaled = unit(np.array([[3, 4], [0, 2]], np.float32))
    assert np.allclose(scaled, [[0.6, 0.8], [0, 1]])
