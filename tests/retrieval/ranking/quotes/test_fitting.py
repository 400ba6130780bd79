"""Learning an order from lists of candidates."""

import math
from random import Random

import pytest

from retrieval.ranking.quotes.fitting import Choice, fit_order


def choices(count, *, seed=1):
    """Return questions whose answer is the candidate with the highest "good"; "noise" tells nothing."""
    random = Random(seed)
    found = []
    for _ in range(count):
        signals = [{"good": random.random(), "noise": random.random()} for _ in range(5)]
        best = max(it["good"] for it in signals)
        found.append(Choice(signals, [it["good"] == best for it in signals]))
    return found


def test_it_learns_which_signal_tells_the_answer():
    model = fit_order(choices(200), ("good", "noise"))
    assert model.weights["good"] > 1
    assert abs(model.weights["noise"]) < 0.3
    right = 0
    for choice in choices(100, seed=2):
        scores = [model.log_odds(it) for it in choice.signals]
        right += choice.answers[scores.index(max(scores))]
    assert right > 90


def test_one_question_with_two_candidates_by_hand():
    # Standardised, the signal is 1 and -1; log(1 + exp(-2 w)) + 3 w^2 / 2 is lowest where 2 / (1 + exp(2 w)) = 3 w.
    model = fit_order([Choice([{"x": 4.0}, {"x": 2.0}], [True, False])], ("x",))
    weight = model.weights["x"]
    assert (model.means["x"], model.scales["x"]) == (3.0, 1.0)
    assert 2 / (1 + math.exp(2 * weight)) == pytest.approx(3 * weight, abs=1e-3)


def test_several_answers_of_one_question_share_the_wish():
    both = Choice([{"x": 1.0}, {"x": 1.0}, {"x": 0.0}], [True, True, False])
    assert fit_order([both], ("x",)).weights["x"] > 0


@pytest.mark.parametrize(
    ("answers", "informative"), [((True, False), True), ((True, True), False), ((False, False), False)]
)
def test_a_choice_informs_if_some_candidates_answer_and_some_do_not(answers, informative):
    assert Choice([{}, {}], answers).is_informative is informative
