import re
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest

from retrieval.evaluation.bench.plan import CONNECTIONS
from retrieval.evaluation.bench.synthesis import DIM, mixing, plain_words, synthesis, unit, word
from retrieval.graph.mentions import mentions_of
from retrieval.graph.names import names_of
from retrieval.graph.spans import number_of


@pytest.fixture(scope="module")
def shared():
    return synthesis(chunks=40_000, seed=0)


def test_the_same_seed_gives_the_same_documents(shared):
    first, again = list(shared.documents(3, 20)), list(synthesis(chunks=40_000, seed=0).documents(3, 20))
    assert [it.texts for it in first] == [it.texts for it in again]
    assert all(np.array_equal(one.vectors, other.vectors) for one, other in zip(first, again, strict=True))


def test_another_seed_or_connection_gives_others(shared):
    titles = [next(it).title for it in (shared.documents(0, 4), shared.documents(1, 4))]
    titles.append(next(synthesis(chunks=40_000, seed=1).documents(0, 4)).title)
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
    texts = [plain_words(text) for it in shared.documents(0, 400) for text in it.texts]
    assert 110 < np.mean([len(text) for text in texts]) < 130
    assert 0.2 < np.mean([word(0) in text for text in texts]) < 0.5
    words = [one for text in texts for one in text]
    assert len(set(words)) > 5000


def test_every_place_of_the_vocabulary_has_a_word_of_its_own(shared):
    assert len(set(shared.vocabulary)) == len(shared.vocabulary) == 200_000


def test_words_are_made_of_syllables_and_an_ending():
    assert [word(place) for place in (0, 1, 52, 52**3)] == ["bababab", "bibabab", "babibab", "bababag"]


def test_titles_are_names_of_two_rare_words(shared):
    titles = [it.title for it in shared.documents(0, 20)]
    assert all(len(title.split()) == 2 and title == title.title() for title in titles)
    assert len(set(titles)) == 5


def test_most_texts_speak_of_another_document_by_its_name(shared):
    documents = list(shared.documents(5, 20))
    links = [(document, link) for document in documents for link in document.links]
    assert 8 <= len(links) <= 20
    for document, link in links:
        assert document.texts[link.ordinal][link.start : link.end] == shared.title(link.connection, link.place)


def test_ingestion_finds_the_titles_that_texts_speak_of(shared):
    for document in shared.documents(7, 40):
        for link in document.links:
            (name, *_) = names_of(shared.title(link.connection, link.place))
            assert number_of(name.key) in mentions_of(document.texts[link.ordinal]).keys


def test_texts_are_sentences(shared):
    for document in shared.documents(8, 40):
        for text in document.texts:
            sentences = re.split(r"(?<=\.) ", text)
            assert all(sentence[0].isupper() and sentence.endswith(".") for sentence in sentences)
            assert all(len(sentence.split()) <= 26 for sentence in sentences)


def test_links_stay_mostly_within_a_topic_and_some_documents_have_many():
    shared = synthesis(chunks=5_000, seed=0)
    inside, targets = 0, Counter()
    for number in range(CONNECTIONS):
        for place, document in enumerate(shared.documents(number, 50)):
            for link in document.links:
                targets[link.connection, link.place] += 1
                inside += shared.topics[link.connection, link.place] == shared.topics[number, place]
    count = sum(targets.values())
    assert count == pytest.approx(3_750, rel=0.05)
    assert 0.65 < inside / count < 0.75
    assert targets.most_common(1)[0][1] > 5 * count / 1_250


def test_components_count_alike_unless_the_first_are_to_carry_most(shared):
    def share(synthetic):
        vectors = np.concatenate([it.vectors for it in synthetic.documents(0, 200)])
        return float((vectors[:, : DIM // 3] ** 2).sum() / (vectors**2).sum())

    assert share(shared) == pytest.approx(1 / 3, abs=0.05)
    assert share(synthesis(chunks=40_000, seed=0, nested=True)) > 0.8


def test_a_rotation_changes_no_cosine():
    drawn = np.random.default_rng(0).standard_normal((5, DIM)).astype(np.float32)
    assert np.allclose(unit(drawn) @ unit(drawn).T, unit(drawn @ mixing()) @ unit(drawn @ mixing()).T, atol=1e-4)


def test_unit_scales_each_vector():
    scaled = unit(np.array([[3, 4], [0, 2]], np.float32))
    assert np.allclose(scaled, [[0.6, 0.8], [0, 1]])
