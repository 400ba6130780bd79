"""Learning the order of candidates from questions with known answers. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from retrieval.ranking.answerability.logistic import Floats, LogisticModel, Sample, Signals, uninformed

_RIDGE: Final = 3.0
_MAX_STEPS: Final = 2_000
_CONVERGED: Final = 1e-7
_MIN_STEP: Final = 1e-12


@dataclass(frozen=True, slots=True)
class Choice:
    """The candidates of one question, and which of them answer it."""

    signals: Sequence[Signals]
    answers: Sequence[bool]

    @property
    def is_informative(self) -> bool:
        """Whether some candidates answer and some do not."""
        return any(self.answers) and not all(self.answers)


def fit_order(choices: Sequence[Choice], names: Sequence[str]) -> LogisticModel:
    """Return the weights that put candidates with the answer first; the model's log-odds are scores without a zero.

    Minimises, over the questions, -log of the share that the candidates with the answer have in the softmax of the
    scores (the listwise loss of Cao et al., "Learning to Rank: From Pairwise Approach to Listwise Approach", ICML 2007,
    for the top place), plus ridge / 2 times the squared weights, by gradient descent. Signals are standardised over
    all candidates; each must be present. Expects informative choices.
    """
    every = [Sample(signals, answerable=False) for choice in choices for signals in choice.signals]
    scale = uninformed(every, names)
    lists = [_standardised(choice, scale) for choice in choices]
    weights = _descend(lists, np.zeros(len(names)))
    return LogisticModel(0.0, dict(zip(names, map(float, weights), strict=True)), scale.means, scale.scales)


def _standardised(choice: Choice, scale: LogisticModel) -> tuple[Floats, NDArray[np.bool_]]:
    rows = [[(it[name] - scale.means[name]) / scale.scales[name] for name in scale.weights] for it in choice.signals]
    return np.array(rows), np.array(choice.answers, dtype=bool)


def _descend(lists: Sequence[tuple[Floats, NDArray[np.bool_]]], weights: Floats) -> Floats:
    """Return the weights at a minimum, by steps that halve until they lower the loss and double after they did."""
    step = 1.0 / len(lists)
    value, gradient = _loss(lists, weights)
    for _ in range(_MAX_STEPS):
        while True:
            new = weights - step * gradient
            new_value, new_gradient = _loss(lists, new)
            if new_value <= value - 0.5 * step * float(gradient @ gradient) or step < _MIN_STEP:
                break
            step /= 2
        gained, weights, value, gradient, step = value - new_value, new, new_value, new_gradient, 2 * step
        if gained < _CONVERGED * max(1.0, value):
            break
    return weights


def _loss(lists: Sequence[tuple[Floats, NDArray[np.bool_]]], weights: Floats) -> tuple[float, Floats]:
    """Return the loss and its gradient."""
    value = 0.5 * _RIDGE * float(weights @ weights)
    gradient = _RIDGE * weights
    for rows, answers in lists:
        scores = rows @ weights
        shares = np.exp(scores - scores.max())
        shares /= shares.sum()
        right = float(shares[answers].sum())
        wanted = np.where(answers, shares / right, 0.0)
        value -= float(np.log(right))
        gradient = gradient + rows.T @ (shares - wanted)
    return value, gradient
