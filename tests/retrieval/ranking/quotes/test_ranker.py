"""The order of candidates."""

import json
import math
from collections import defaultdict
from dataclasses import asdict, replace

import pytest

from retrieval.engine.types import Correction, QueryTerms, Term
from retrieval.ranking.quotes.asked import Asked
from retrieval.ranking.quotes.candidates import candidates
from retrieval.ranking.quotes.ranker import VECTOR_SIGNALS, WORD_SIGNALS, Asking, QuoteRanker, shipped, word_signals
from tests.passages import made

TERMS = QueryTerms((Term("hotel", 1, 3.0), Term("night", 1, 1.0)))
PASSAGES = (
    made(1, "A hotel is booked by the office. A night costs at most 145 euros.", headings=("Hotel",)),
    made(2, "Lunch costs 12 euros. The office opens at nine."),
)


def found(passages=PASSAGES):
    return candidates(passages, "", "english")


def asking(question="How much may a hotel night cost?"):
    return Asking.of(question, TERMS)


def test_signals_by_hand():
    booked, costs, lunch, _ = word_signals(found(), asking())
    assert booked["coverage"] == pytest.approx(0.75)
    assert booked["coverage_place"] == 0.0
    assert costs["coverage"] == pytest.approx(0.25)
    assert costs["coverage_place"] == pytest.approx(0.75)
    assert (booked["coverage_passage"], costs["coverage_passage"], lunch["coverage_passage"]) == (1.0, 1.0, 0.0)
    assert (booked["form"], booked["form_missing"]) == (0.0, 1.0)
    assert (costs["form"], costs["form_missing"]) == (1.0, 0.0)
    assert (booked["rank"], lunch["rank"]) == (0.0, pytest.approx(-math.log(2)))
    assert costs["length"] == pytest.approx(math.log(len("A night costs at most 145 euros.") / 100))
    assert booked.keys() == set(WORD_SIGNALS)


@pytest.mark.parametrize(
    ("text", "fragment"),
    [
        ("Overview", 1.0),
        ("Do it at once.", 0.0),
        ("Total 12 34", 0.0),
        ("This is all that can be said", 1.0),
        ("Yes.", 1.0),
    ],
)
def test_an_unfinished_line_is_a_fragment_unless_it_has_figures(text, fragment):
    assert word_signals(found([made(1, text)]), asking())[0]["fragment"] == fragment


@pytest.mark.parametrize(
    ("question", "text", "marked"),
    [
        ("Which rooms are there?", "- one\n- two", {"list_asked"}),
        ("Who is it?", "- one\n- two", {"one_asked"}),
        ("How do I open a room?", "1. Ask.\n2. Wait.", {"steps_asked"}),
        ("How do I open a room?", "- one\n- two", set()),
        ("Which rooms are there?", "One room.", set()),
    ],
)
def test_a_whole_list_is_marked_by_whether_the_question_asks_for_several_things(question, text, marked):
    signals = word_signals(found([made(1, text)]), asking(question))[0]
    assert {name for name in ("steps_asked", "list_asked", "one_asked") if signals[name]} == marked


RATES = (
    "No. | Name | Night rate\n1 | Night porter | 21\n2 | Hotel | 145\n3 | The night of the hotel | 160\n4 | Night | 12"
)


def test_a_row_is_named_where_the_question_itself_has_all_words_of_its_name():
    def named(question):
        rows = [it for it in found([made(1, RATES)]) if len(it.quoted) == 1]
        signals = word_signals(rows, asking(question))
        return [it.quoted[0].text for it, of in zip(rows, signals, strict=True) if of["named"]]

    assert named("How much may a night at a hotel cost?") == [
        "2 | Hotel | 145",
        "3 | The night of the hotel | 160",
        "4 | Night | 12",
    ]
    # The night is a term of the question before.
    assert named("And a hotel?") == ["2 | Hotel | 145"]


def test_the_numbers_of_a_rows_name_count_where_the_question_has_any():
    rows = [it for it in found([made(1, "Grade | Pay\nGrade 3 | 21\nGrade 7 | 34")]) if len(it.quoted) == 1]

    def named(question):
        terms = QueryTerms(tuple(Term(it, 1, 1.0) for it in ("grade", "pay", "7")))
        signals = word_signals(rows, Asking.of(question, terms))
        return [it.quoted[0].text for it, of in zip(rows, signals, strict=True) if of["named"]]

    assert named("What is the pay for grade 7?") == ["Grade 7 | 34"]
    assert named("What is the pay of a grade?") == ["Grade 3 | 21", "Grade 7 | 34"]


def test_a_row_is_named_by_a_misspelled_word_too():
    terms = replace(TERMS, corrections=(Correction("hotle", "hotel"),))
    (row,) = (it for it in found([made(1, RATES)]) if [unit.text for unit in it.quoted] == ["2 | Hotel | 145"])
    assert word_signals([row], Asking.of("hotle price", terms))[0]["named"]


def test_the_sentence_with_the_price_comes_first():
    assert shipped().best_first(found(), asking())[0].candidate.text == "A night costs at most 145 euros."


def test_a_higher_cosine_never_lowers_a_candidate():
    ranked = shipped().best_first(found(), asking())
    for last in range(len(ranked)):
        cosines = cosines_of(ranked, [float(at == last) for at in range(len(ranked))])
        again = shipped().again(ranked, cosines)
        before, after = ([it.candidate for it in order].index(ranked[last].candidate) for order in (ranked, again))
        assert after <= before


def test_where_one_of_them_has_no_vector_the_order_by_words_stays():
    ranked = shipped().best_first(found(), asking())
    cosines = cosines_of(ranked[:-1], [0.1, 0.2, 0.3])
    assert shipped().again(ranked, cosines) == ranked


def test_a_cosine_is_compared_with_those_of_its_chunk():
    ranked = shipped().best_first(found(PASSAGES[:1]), asking())
    first, second = shipped().again(ranked, cosines_of(ranked, [0.6, 0.8]))
    assert sorted((first.signals["cosine"], second.signals["cosine"])) == [0.6, 0.8]
    for it in (first, second):
        assert it.signals["cosine_over_mean"] == pytest.approx(it.signals["cosine"] - 0.7)
        assert it.signals["cosine_best"] == 0.8


def cosines_of(ranked, values):
    """Return cosines as a store gives them."""
    cosines = defaultdict(dict)
    for it, value in zip(ranked, values, strict=True):
        cosines[it.candidate.passage.hit.chunk_id][it.candidate.run] = value
    return cosines


def test_a_question_without_terms_has_an_order_too():
    assert len(shipped().best_first(found(), Asking.of("and or", QueryTerms()))) == 4


def test_the_shipped_ranker_reads_every_signal_and_survives_being_stored():
    ranker = shipped()
    assert (tuple(ranker.by_words.weights), tuple(ranker.by_vectors.weights)) == (WORD_SIGNALS, VECTOR_SIGNALS)
    assert QuoteRanker.from_json(json.loads(json.dumps(asdict(ranker)))) == ranker
    for model in (ranker.by_words, ranker.by_vectors):
        assert min(model.weights[name] for name in ("coverage", "coverage_place", "rank", "form")) > 0


@pytest.mark.parametrize(
    ("question", "language", "kind"),
    [
        ("Wie lange dauert die Probezeit?", "german", Asked.DURATION),
        ("Qui signe les notes de frais ?", "french", Asked.PERSON),
        # In doubt it is in the language of its terms.
        ("Kosten", "german", Asked.NUMBER),
        ("Wie lang is de proeftijd?", "german", None),
    ],
)
def test_a_question_is_read_in_its_own_language(question, language, kind):
    asking = Asking.of(question, QueryTerms(language="german"))
    assert asking.language == language
    assert kind is None or kind in asking.kinds


def test_terms_are_found_by_the_stems_of_their_language():
    terms = QueryTerms((Term("hotel", 1, 3.0), Term("haus", 1, 1.0)), language="german")
    assert Asking.of("Häuser und Hotels?", terms).finder.found("Im Hotel gibt es Häuser.") == {"hotel", "haus"}
