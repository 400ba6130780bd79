"""Logistic regression: by hand, by an independent optimiser, and its properties."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.ranking.answerability.logistic import LogisticModel, Sample, fit, logistic, uninformed

MODEL = LogisticModel(-0.5, {"a": 2.0, "b": -1.0}, {"a": 0.4, "b": 10.0}, {"a": 0.2, "b": 5.0})


def test_a_probability_by_hand():
    # a: 2 (0.6 - 0.4) / 0.2 = 2; b: -1 (15 - 10) / 5 = -1; -0.5 + 2 - 1 = 0.5; 1 / (1 + e^-0.5) = 0.62246.
    signals = {"a": 0.6, "b": 15.0, "unknown": 7.0}
    assert MODEL.contributions(signals) == {"a": pytest.approx(2.0), "b": pytest.approx(-1.0)}
    assert MODEL.probability(signals) == pytest.approx(0.6224593)


def test_an_absent_signal_adds_nothing():
    assert MODEL.contributions({"b": 10.0}) == {"b": 0.0}
    assert MODEL.log_odds({}) == -0.5


@given(st.floats(-1e6, 1e6))
def test_the_logistic_function_stays_between_0_and_1_and_is_symmetric(value):
    assert 0 <= logistic(value) <= 1
    assert logistic(value) + logistic(-value) == pytest.approx(1)


@given(st.dictionaries(st.sampled_from(["a", "b", "c"]), st.floats(-1e9, 1e9)))
def test_any_signals_give_a_probability(signals):
    assert 0 <= MODEL.probability(signals) <= 1


def test_with_no_signal_the_fit_is_the_log_odds_of_the_shares():
    # 3 of 4 are answerable: ln(3 / 1) = 1.0986.
    samples = [Sample({}, answerable=True)] * 3 + [Sample({}, answerable=False)]
    assert fit(samples, ridge=1.0, prior=uninformed(samples, [])).intercept == pytest.approx(math.log(3))


def test_weights_count_as_repeated_samples():
    light = [Sample({}, answerable=True, weight=3.0), Sample({}, answerable=False)]
    assert fit(light, ridge=1.0, prior=uninformed(light, [])).intercept == pytest.approx(math.log(3))


def test_a_prior_without_data_to_speak_against_it_stays():
    samples = [Sample({"a": 0.4}, answerable=True), Sample({"a": 0.4}, answerable=False)]
    prior = LogisticModel(0.0, {"a": 0.7}, {"a": 0.4}, {"a": 0.2})
    assert fit(samples, ridge=1.0, prior=prior).weights["a"] == pytest.approx(0.7)


def test_means_and_scales_are_of_the_samples_that_have_the_signal():
    samples = [Sample({"a": 1.0}, answerable=True), Sample({"a": 3.0}, answerable=False), Sample({}, answerable=True)]
    prior = uninformed(samples, ["a", "b"])
    assert (prior.means, prior.scales) == ({"a": 2.0, "b": 0.0}, {"a": 1.0, "b": 1.0})


def drawn(seed, count=200):
    random = np.random.default_rng(seed)
    values = random.normal(size=(count, 2))
    answerable = random.random(count) < 1 / (1 + np.exp(-(1.5 * values[:, 0] - values[:, 1] + 0.3)))
    return [
        Sample({"a": a, "b": b} if a > -1 else {"b": b}, bool(yes), weight=float(weight))
        for (a, b), yes, weight in zip(values, answerable, random.uniform(0.5, 2, count), strict=True)
    ]


@pytest.mark.parametrize("ridge", [0.1, 1.0, 30.0])
def test_it_agrees_with_an_independent_optimiser(ridge):
    from scipy.optimize import minimize

    samples = drawn(seed=3)
    bare = uninformed(samples, ["a", "b"])
    prior = LogisticModel(0.0, {"a": 0.5, "b": 0.0}, bare.means, bare.scales)

    def loss(point):
        model = LogisticModel(point[0], {"a": point[1], "b": point[2]}, bare.means, bare.scales)
        losses = [
            it.weight
            * math.log1p(math.exp(-model.log_odds(it.signals) if it.answerable else model.log_odds(it.signals)))
            for it in samples
        ]
        return sum(losses) + ridge / 2 * ((point[1] - 0.5) ** 2 + point[2] ** 2)

    reference = minimize(loss, [0.0, 0.0, 0.0], method="BFGS", options={"gtol": 1e-7}).x
    found = fit(samples, ridge=ridge, prior=prior)
    assert [found.intercept, found.weights["a"], found.weights["b"]] == pytest.approx(reference, abs=1e-4)


def test_classes_that_a_signal_parts_cleanly_have_a_finite_fit():
    samples = [Sample({"a": float(n)}, answerable=n > 4) for n in range(10)]
    found = fit(samples, ridge=1.0, prior=uninformed(samples, ["a"]))
    assert 0 < found.weights["a"] < 100
    assert found.probability({"a": 9.0}) > 0.8
