"""Every signal by hand. The question's idf: rollo 4 (nowhere in scope), 911 3, charl 2, swear 1, together 10."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.engine.types import QueryTerms, Term
from retrieval.ranking.answerability.signals import Evidence, Sentence, read_signals, sentence_cosine, unknown_terms


def signals(evidence, *sentences):
    return read_signals(evidence, sentences)


def sentence(own=0.0, with_previous=0.0, score=0.0, text="", with_title=0.1):
    return Sentence(text, own, with_previous, with_title, score)


def test_coverage_is_the_share_of_the_idf_that_passages_hold(evidence, passage):
    found = signals(evidence(passage(1, "x", "911"), passage(2, "y", "charl", "swear")))
    # The first holds 3 of 10, the second 2 + 1 = 3 of 10, both together 6; nothing in scope holds rollo's 4.
    assert found["coverage_passage"] == pytest.approx(0.3)
    assert found["coverage_context"] == pytest.approx(0.6)
    assert found["unknown_share"] == pytest.approx(0.4)


def test_the_full_text_score_is_measured_against_all_the_idf(evidence, passage):
    found = signals(evidence(passage(1, "x", "911", share=0.5), passage(2, "y", "911", "charl", share=1.25)))
    assert found["fulltext_share"] == pytest.approx(2.5 / 10)


def test_a_sentence_counts_with_the_one_before_it(evidence, passage):
    found = signals(evidence(passage(1, "x")), sentence(0.2, 0.2), sentence(0.1, 0.3), sentence(0.3, 0.4))
    assert found["coverage_sentence"] == 0.4
    # The best alone has 0.3, the others 0.2 and 0.1: 0.3 - 0.15.
    assert found["sentence_lead"] == pytest.approx(0.15)


def test_the_best_sentence_is_compared_with_the_next_five(evidence, passage):
    sentences = [sentence(0.5, score=4.0), *[sentence(0.2, score=1.0)] * 4, sentence(0.2, score=0.5), sentence()]
    found = signals(evidence(passage(1, "x")), *reversed(sentences))
    # Coverage of 0.5 against five times 0.2, and log-odds of 4 against the sixth ones.
    assert (found["sentence_lead"], found["quote_lead"]) == (pytest.approx(0.3), 3.5)


@pytest.mark.parametrize(("with_title", "score", "lead"), [(0.0, 5.0, 0.0), (0.1, 5.0, 5.0), (0.1, 50.0, 8.0)])
def test_the_lead_is_bounded_and_none_without_a_term_of_the_question(evidence, passage, with_title, score, lead):
    found = signals(evidence(passage(1, "x")), sentence(score=score, with_title=with_title), sentence(with_title=0.0))
    assert found["quote_lead"] == lead


def test_the_only_sentence_has_no_lead(evidence, passage):
    found = signals(evidence(passage(1, "x")), sentence(0.5, 0.5, score=2.0))
    assert found["sentence_lead"] == 0.0
    assert "quote_lead" not in found


@pytest.mark.parametrize(
    ("question", "text", "unmatched"),
    [
        ("What did he not swear?", "He would swear.", 1.0),
        ("What did he not swear?", "He did not swear.", 0.0),
        ("What didn't he swear?", "He would swear.", 1.0),
        ("What did he swear?", "He did not swear.", 0.0),
    ],
)
def test_a_denial_wants_one_in_the_best_sentence(evidence, passage, question, text, unmatched):
    found = signals(evidence(passage(1, text), question=question), sentence(0.1), sentence(0.2, text=text))
    assert found["denial_unmatched"] == unmatched


def test_the_vector_legs_lead_is_in_standard_deviations_of_the_rest(evidence, passage, leg):
    # The others: five at 0.4, five at 0.6, mean 0.5, standard deviation 0.1.
    dense = leg(*range(11), scores=[0.8, *[0.6] * 5, *[0.4] * 5])
    found = signals(evidence(passage(1, "x", cosine=0.8), passage(2, "y", cosine=0.6), dense=dense))
    assert found["cosine_lead"] == pytest.approx(3.0)
    assert found["cosine_best"] == 0.8


def test_the_cosine_of_another_models_index_is_not_read(evidence, passage):
    found = signals(evidence(passage(1, "x", cosine=0.9, cosine_noise=0.8), passage(2, "y", cosine=0.6)))
    assert found["cosine_best"] == 0.6


def test_few_hits_say_nothing_of_a_lead(evidence, passage, leg):
    assert "cosine_lead" not in signals(evidence(passage(1, "x"), dense=leg(*range(10))))


def test_names_count_in_the_first_passage_and_numbers_in_the_best(evidence, passage):
    found = signals(evidence(passage(1, "x", "charl"), passage(2, "y", "911", "rollo")))
    # Names: rollo and charl, of which the first passage has one.
    assert found["entity_coverage"] == pytest.approx(0.5)
    assert found["number_coverage"] == 1.0


@pytest.mark.parametrize("of_words", ["fulltext", "bm25"])
def test_the_legs_agree_as_far_as_they_share_their_best(evidence, passage, leg, of_words):
    found = signals(evidence(passage(1, "x"), dense=leg(1, 2, 3), **{of_words: leg(3, 1, 9, 8)}))
    # Two of ten places; chunk 1 is second there (1/2), chunk 3 third here (1/3).
    assert found["leg_overlap"] == pytest.approx(0.2)
    assert found["leg_agreement"] == pytest.approx((1 / 2 + 1 / 3) / 2)


def test_legs_without_a_common_hit_do_not_agree(evidence, passage, leg):
    found = signals(evidence(passage(1, "x"), dense=leg(1), fulltext=leg(2)))
    assert (found["leg_overlap"], found["leg_agreement"]) == (0.0, 0.0)


def test_the_best_rerank_score_stands_under_its_type(evidence, passage):
    found = signals(evidence(passage(1, "x", rerank=-1.5), passage(2, "y", rerank=2.5)))
    assert found["rerank_logit"] == 2.5


def test_what_cannot_be_computed_is_absent(evidence, passage):
    bare = signals(evidence(passage(1, "x"), question="what is it", terms=()))
    assert set(bare) == {"cosine_best"}


def test_no_signal_is_a_fused_score(evidence, passage, leg):
    first = passage(1, "x", rrf=0.03)
    found = signals(evidence(first, dense=leg(1), fulltext=leg(1)))
    assert 0.03 not in found.values()


def test_the_sentences_cosine_is_the_best_of_all_runs(evidence, passage):
    first, second = (it.hit.chunk_id for it in evidence(passage(1, "x"), passage(2, "y")).passages)
    cosines = {first: {range(1): 0.3, range(2): 0.7}, second: {range(1): 0.6}}
    assert sentence_cosine(cosines) == {"sentence_cosine": 0.7}
    assert sentence_cosine({}) == sentence_cosine({first: {}}) == {}


WORDS = st.sampled_from(["Rollo", "swore", "in", "911", "Charles.", "Paris", "not", "Rivers?", "|", "-"])


@given(
    texts=st.lists(st.lists(WORDS, max_size=12).map(" ".join), min_size=1, max_size=5),
    idfs=st.lists(st.floats(0, 9), min_size=3, max_size=3),
    order=st.randoms(use_true_random=False),
)
def test_shares_stay_within_bounds_and_most_do_not_depend_on_the_passages_order(texts, idfs, order):
    from retrieval.engine.types import Passage
    from tests.retrieval.conftest import hit

    lexemes = ("rollo", "911", "charl")
    terms = tuple(Term(lexeme, 1, idf) for lexeme, idf in zip(lexemes, idfs, strict=True))
    passages = [Passage(n, hit(n, text=text or "x", cosine=0.1 * n), "", 5) for n, text in enumerate(texts, start=1)]

    def read(packed):
        return signals(Evidence("Did Rollo swear in 911?", QueryTerms(terms), {}, tuple(packed), lambda _: "english"))

    found, shuffled = read(passages), read(order.sample(passages, len(passages)))
    assert all(-1e-9 <= value <= 1 + 1e-9 for name, value in found.items() if name != "cosine_best")
    kept = ("coverage_passage", "coverage_context", "unknown_share", "number_coverage", "cosine_best")
    assert {name: found.get(name) for name in kept} == pytest.approx({name: shuffled.get(name) for name in kept})


def test_words_that_questions_are_made_with_are_never_unknown():
    terms = QueryTerms((Term("mani", 0, 3.0), Term("zebra", 0, 3.0), Term("queue", 2, 1.0)))
    assert [term.lexeme for term in unknown_terms(terms)] == ["zebra"]
