"""The two fits, and the one that is shipped."""

import json

import pytest

from retrieval.ranking.answerability.logistic import LogisticModel, Sample
from retrieval.ranking.answerability.model import (
    DOUBTS,
    SENTENCE_COSINE,
    WITH_SENTENCES,
    WITHOUT_SENTENCES,
    AnswerabilityModel,
    fitted,
    fitted_from_nothing,
    shipped,
)

FITTED_WITH = "bge-small-en-v1.5"
ONE = LogisticModel(1.0, {"cosine_best": 1.0}, {"cosine_best": 0.5}, {"cosine_best": 0.1})
OTHER = LogisticModel(-1.0, {"cosine_best": 1.0}, {"cosine_best": 0.5}, {"cosine_best": 0.1})


def test_a_search_without_sentence_cosines_is_judged_by_its_own_fit():
    model = AnswerabilityModel(ONE, OTHER)
    assert model.for_signals({"sentence_cosine": 0.1}) is ONE
    assert model.for_signals({"cosine_best": 0.1}) is OTHER


def test_a_model_survives_being_stored():
    model = AnswerabilityModel(ONE, OTHER, is_calibrated=True, score_type="logit")
    assert AnswerabilityModel.from_json(json.loads(json.dumps(model.to_json())), is_calibrated=True) == model


@pytest.mark.parametrize("data", [{}, {"with_sentences": {}}, {"with_sentences": None, "without_sentences": None}])
def test_a_model_that_is_not_whole_is_refused(data):
    with pytest.raises((KeyError, TypeError)):
        AnswerabilityModel.from_json(data, is_calibrated=True)


def test_the_shipped_model_reads_what_it_should_in_the_direction_it_should():
    model = shipped(FITTED_WITH)
    assert not model.is_calibrated
    for fit, names in ((model.with_sentences, WITH_SENTENCES), (model.without_sentences, WITHOUT_SENTENCES)):
        assert fit.weights.keys() <= set(names)
        assert names[-1] in fit.weights
        assert all((weight < 0) == (name in DOUBTS) for name, weight in fit.weights.items())


def test_more_evidence_never_lowers_the_shipped_confidence():
    weak = dict.fromkeys(WITHOUT_SENTENCES, 0.2)
    for name in shipped(FITTED_WITH).without_sentences.weights:
        gained = shipped(FITTED_WITH).confidence({**weak, name: 0.4}) - shipped(FITTED_WITH).confidence(weak)
        assert gained < 0 if name in DOUBTS else gained > 0


def test_no_cosine_of_another_embedding_model_is_read():
    near = {"coverage_sentence": 0.6, "cosine_lead": 3.0, "cosine_best": 0.7, SENTENCE_COSINE: 0.7}
    far = {**near, "cosine_best": 0.1, SENTENCE_COSINE: 0.1}
    assert shipped("another").confidence(far) == shipped("another").confidence(near)
    assert shipped(FITTED_WITH).confidence(far) < shipped(FITTED_WITH).confidence(near)
    assert shipped("another").confidence({**far, "coverage_sentence": 0.1}) < shipped("another").confidence(far)


def samples(count, **more):
    """Return questions of which those with a high rerank score are answerable."""
    return [
        Sample({"cosine_best": 0.7, "rerank_logit": 3.0 if n % 2 else -3.0, **more}, answerable=bool(n % 2))
        for n in range(count)
    ]


def test_a_rerankers_score_is_taken_in_where_there_is_one():
    model = fitted(samples(100), ridge=1.0, prior=shipped(FITTED_WITH), score_type="logit")
    assert model.is_calibrated
    assert model.without_sentences.weights["rerank_logit"] > 1
    assert model.confidence({"cosine_best": 0.7, "rerank_logit": 3.0}) > 0.9
    assert "rerank_logit" not in shipped(FITTED_WITH).without_sentences.weights


def test_a_calibration_reads_the_cosines_of_its_own_embedding_model():
    judged = [Sample({"cosine_best": n % 2 / 9, SENTENCE_COSINE: 0.1}, answerable=bool(n % 2)) for n in range(60)]
    model = fitted(judged, ridge=1.0, prior=shipped("another"))
    assert model.confidence({"cosine_best": 1 / 9}) - model.confidence({"cosine_best": 0.0}) > 0.6
    assert SENTENCE_COSINE in model.with_sentences.weights
    assert SENTENCE_COSINE not in model.without_sentences.weights


def test_a_fit_from_nothing_has_means_of_its_own():
    model = fitted_from_nothing(samples(20, coverage_sentence=0.25), ridge=1.0)
    assert model.with_sentences.means["coverage_sentence"] == 0.25
