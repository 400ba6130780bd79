"""Scores against the formula, and what a question may and may not find."""

import math
from datetime import UTC, datetime, timedelta
from uuid import UUID

import numpy as np
import pytest

from retrieval.engine.state import RequestFilter
from retrieval.engine.types import MemoryType
from retrieval.index.bm25 import schema
from retrieval.index.bm25.question import Composer
from tests.retrieval.index.bm25.conftest import WEIGHTS, chunk

K1, B = 1.2, 0.75


def bm25(texts, query):
    """Return the scores by the formula: whole words, no stems, one field."""
    words = [text.split() for text in texts]
    average = sum(map(len, words)) / (len(words) + 1)  # the index's mark has no words and counts as a chunk
    scores = np.zeros(len(texts))
    for term in set(query.split()):
        frequency = sum(term in it for it in words)
        idf = math.log(1 + (len(words) - frequency + 0.5) / (frequency + 0.5))
        tf = np.array([it.count(term) for it in words])
        lengths = np.array([len(it) for it in words])
        scores += idf * tf * (K1 + 1) / (tf + K1 * (1 - B + B * lengths / average))
    return scores


def test_scores_are_those_of_the_formula(shelf):
    rng = np.random.default_rng(7)
    vocabulary = [a + b + c for a in "bdfgk" for b in "aiou" for c in "bgkp"]
    texts = [
        " ".join(rng.choice(vocabulary, size=rng.integers(5, 40), p=np.arange(80, 0, -1) / 3240)) for _ in range(60)
    ]
    shelf.build(*(chunk(number, text) for number, text in enumerate(texts, start=1)))
    for _ in range(20):
        query = " ".join(rng.choice(vocabulary, size=3, replace=False))
        expected = bm25(texts, query)
        found = shelf.scores(query, size=60)
        assert found == pytest.approx({n + 1: it for n, it in enumerate(expected) if it > 0}, rel=1e-3)
        assert list(found.values()) == sorted(found.values(), reverse=True)


def test_a_worked_example(shelf):
    # N = 2, df = 1: idf = ln(1 + 1.5 / 1.5) = 0.6931. Three entries with the mark, 4 words: average 4/3.
    # tf = 1, length 2: 2.2 / (1 + 1.2 * (0.25 + 0.75 * 2 / (4/3))) = 2.2 / 2.65 = 0.8302.
    shelf.build(chunk(1, "lamp oil"), chunk(2, "wind mill"))
    assert shelf.scores("lamp", size=2) == pytest.approx({1: 0.6931 * 0.8302}, abs=1e-3)


def test_titles_and_headings_count_more(shelf):
    shelf.build(
        chunk(1, "lamp oil wick", title="Wells", headings=("Depth",)),
        chunk(2, "oil wick depth", title="Lamps", headings=("Wells",)),
        chunk(3, "oil wick depth", title="Wells", headings=("Lamps",)),
    )
    found = shelf.scores("lamp", size=3)
    assert list(found) == [2, 3, 1]


def test_hidden_chunks_do_not_show_in_the_scores_of_visible_ones(shelf):
    """The same number of words is hidden, so that the average length stays; how many chunks hold the term does not."""
    visible = [chunk(1, "lamp oil"), chunk(2, "wind mill")]
    rare = shelf.build(*visible, *(chunk(n, "other words", connection=2) for n in range(3, 30))).scores("lamp", size=2)
    common = shelf.build(*visible, *(chunk(n, "lamp words", connection=2) for n in range(3, 30))).scores("lamp", size=2)
    assert common == pytest.approx(rare, rel=1e-5)


def test_what_was_taken_out_and_not_merged_away_does_not_show_either(shelf):
    shelf.build(chunk(1, "lamp oil"), *(chunk(n, "lamp wind", connection=2) for n in range(2, 9)))
    before = shelf.scores("lamp", size=1)
    shelf.write(gone=range(4, 9))
    # Only the average length may move a little.
    assert shelf.scores("lamp", size=1) == pytest.approx(before, rel=0.2)


def test_nothing_outside_the_scope_is_found(shelf):
    shelf.build(*(chunk(n, "lamp oil", connection=n % 5) for n in range(1, 51)))
    for connections in ((1,), (2, 3), (0, 4), tuple(range(5))):
        assert {n % 5 for n in shelf.scores("lamp", connections=connections)} == set(connections)
    assert shelf.scores("lamp", connections=(77,)) == {}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("lamp wind", {1, 2, 3, 4}),
        ('"oil lamp"', {2}),
        ('"lamp oil"', {1}),
        ("lamp -oil", {3}),
        ('lamp -"oil lamp"', {1, 3}),
        ("mill OR oil", {1, 2, 4}),
        ("mill OR oil -lamp", {4}),
        ('"wind mill" OR "lamp oil"', {1, 4}),
        ("the of and", set()),
        ('"the mill"', set()),
        ("...", set()),
        ("unheard", set()),
    ],
)
def test_operators_are_taken_as_meant(shelf, text, found):
    shelf.build(chunk(1, "lamp oil"), chunk(2, "oil lamp"), chunk(3, "lamp"), chunk(4, "wind mill"))
    assert set(shelf.scores(text)) == found


def test_words_beside_a_phrase_ask_about_it(shelf):
    shelf.build(chunk(1, "lamp oil"), chunk(2, "burn lamp"))
    view = shelf.reader.view()

    def relaxed(text):
        query = Composer(view, shelf.question(text)).relaxed
        return None if query is None else {it.document_id.int for it, _ in view.best(query, 9)}

    assert relaxed('how to burn "lamp oil"') == {1, 2}
    assert relaxed('"lamp oil"') is None
    assert relaxed('"lamp oil" -burn') is None
    assert relaxed("lamp oil") is None


def test_a_phrase_does_not_reach_from_the_title_into_the_text(shelf):
    shelf.build(chunk(1, "oil burns", title="Lamp"))
    assert shelf.scores('"lamp oil"') == {}
    assert set(shelf.scores('"oil burns"')) == {1}


def test_another_language_stands_as_it_is(shelf):
    shelf.build(chunk(1, "Die Häuser", language="german"), chunk(2, "houses and die"))
    both = {"languages": frozenset({"english", "german"})}
    assert set(shelf.scores("Häuser", **both)) == {1}
    assert set(shelf.scores("hauser", **both)) == {1}
    assert set(shelf.scores("house", **both)) == {2}
    assert shelf.scores("Häuser") == {}
    # "die" is a stop word of German, not of English.
    assert set(shelf.scores("die", **both)) == {2}
    assert set(shelf.scores('"die häuser"', **both)) == {1}


def test_a_language_without_spaces_is_read_sign_by_sign(shelf):
    shelf.build(chunk(1, "東京都の地図"), chunk(2, "大阪の天気"))
    assert list(shelf.scores("東京の地図")) == [1, 2]
    assert set(shelf.scores('"天気"')) == {2}


NOW = datetime(2026, 6, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("kept", "found"),
    [
        (RequestFilter(), {1, 2, 3, 4, 5}),
        (RequestFilter(since=NOW - timedelta(days=2)), {1, 3, 5}),
        (RequestFilter(until=NOW - timedelta(days=2)), {1, 2, 3, 4}),
        (RequestFilter(project="hull"), {1, 2, 3, 4}),
        (RequestFilter(memory_types=frozenset({MemoryType.EPISODIC})), {1, 2, 3, 5}),
        (RequestFilter(project="hull", memory_types=frozenset({MemoryType.DECISION})), {1, 2, 3, 4}),
    ],
)
def test_a_filter_leaves_what_it_keeps_and_what_postgresql_has_to_tell(shelf, kept, found):
    shelf.build(
        chunk(1, "lamp"),
        chunk(2, "lamp", modified_at=NOW - timedelta(days=9)),
        chunk(3, "lamp", modified_at=NOW),
        chunk(4, "lamp", modified_at=NOW - timedelta(days=9), memory_kind="decision", memory_project="hull"),
        chunk(5, "lamp", modified_at=NOW, memory_kind="episodic", memory_project="mast"),
    )
    assert set(shelf.scores("lamp", request_filter=kept)) == found


@pytest.mark.parametrize(
    ("kept", "found"),
    [
        (RequestFilter(documents=frozenset({UUID(int=1), UUID(int=3), UUID(int=99)})), {1, 3}),
        (RequestFilter(documents=frozenset({UUID(int=99)})), set()),
        (RequestFilter(source_types=frozenset({"excel"})), {1, 2}),
        (RequestFilter(source_types=frozenset({"pdf", "csv"})), {3, 4}),
        (RequestFilter(hint="table"), {1, 3}),
        (RequestFilter(hint="list"), {3}),
        (RequestFilter(hint="steps"), set()),
        (RequestFilter(min_quality=0.25), {2, 3, 4}),
        (RequestFilter(min_quality=0.250001), {3, 4}),
        (RequestFilter(min_quality=1.0), {3}),
        (RequestFilter(source_types=frozenset({"excel"}), min_quality=0.2, documents=frozenset({UUID(int=2)})), {2}),
        (RequestFilter(source_types=frozenset({"pdf"}), hint="table", since=NOW), {3}),
    ],
)
def test_what_a_filter_says_of_documents_and_chunks_is_in_the_index(shelf, kept, found):
    shelf.build(
        chunk(1, "lamp", source_type="excel", hints=("table",), quality=0.1),
        chunk(2, "lamp", source_type="excel", quality=0.25),
        chunk(3, "lamp", source_type="pdf", hints=("list", "table"), quality=1.0),
        chunk(4, "lamp", source_type="csv", quality=0.9),
        chunk(5, "lamp", source_type="excel", hints=("table", "list"), connection=2),
    )
    assert set(shelf.scores("lamp", request_filter=kept)) == found


def test_the_depth_is_not_spent_on_what_a_filter_leaves_out(shelf):
    shelf.build(
        *(chunk(n, "lamp lamp", quality=0.1) for n in range(1, 50)), chunk(50, "lamp oil wick", source_type="pdf")
    )
    assert set(shelf.scores("lamp", depth=3, request_filter=RequestFilter(min_quality=0.25))) == {50}
    assert set(shelf.scores("lamp", depth=3, request_filter=RequestFilter(source_types=frozenset({"pdf"})))) == {50}


def test_every_weight_can_be_nothing(shelf):
    shelf.build(chunk(1, "lamp", title="Lamp"))
    assert set(shelf.scores("lamp", weights={schema.TITLE: 1.0})) == {1}
    assert shelf.scores("lamp", weights={}) == {}


def test_questions_that_a_model_wrote_are_searched_too(shelf):
    shelf.build(chunk(1, "lamp oil", questions=("Which wick burns longest?",)), chunk(2, "wick"))
    assert shelf.scores("wick", weights={**WEIGHTS, schema.QUESTIONS: 0.3}, size=2).keys() == {1, 2}
    assert set(shelf.scores("wick", weights=WEIGHTS)) == {2}
