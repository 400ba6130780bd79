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
    rows = np.array([[(it.signals[name] - scale.means[name]) / scale.scales[name] for name in names] for it in every])
    answers = np.array([answers for choice in choices for answers in choice.answers], dtype=bool)
    starts = np.cumsum([0, *(len(choice.answers) for choice in choices[:-1])])
    weights = _descend(_Lists(rows, answers, starts), np.zeros(len(names)))
    return LogisticModel(0.0, dict(zip(names, map(float, weights), strict=True)), scale.means, scale.scales)


@dataclass(frozen=True, slots=True)
class _Lists:
    """The candidates of all questions, one question after the other."""

    rows: Floats  #: Shape (candidates, signals).
    answers: NDArray[np.bool_]
    starts: NDArray[np.intp]  #: The first candidate of each question.

    def loss(self, weights: Floats) -> tuple[float, Floats]:
        """Return the loss and its gradient."""
        scores = self.rows @ weights
        sizes = np.diff([*self.starts, len(scores)])
        scores = np.exp(scores - np.repeat(np.maximum.reduceat(scores, self.starts), sizes))
        shares = scores / np.repeat(np.add.reduceat(scores, self.starts), sizes)
        right = np.add.reduceat(shares * self.answers, self.starts)
        wanted = shares * self.answers / np.repeat(right, sizes)
        value = 0.5 * _RIDGE * float(weights @ weights) - float(np.log(right).sum())
        return value, _RIDGE * weights + self.rows.T @ (shares - wanted)


def _descend(lists: _Lists, weights: Floats) -> Floats:
    """Return the weights at a minimum, by steps that halve until they lower the loss and double after they did."""
    step = 1.0 / len(lists.starts)
    value, gradient = lists.loss(weights)
    for _ in range(_MAX_STEPS):
        while True:
            new = weights - step * gradient
            new_value, new_gradient = lists.loss(new)
            if new_value <= value - 0.5 * step * float(gradient @ gradient) or step < _MIN_STEP:
                break
            step /= 2
        gained, weights, value, gradient, step = value - new_value, new, new_value, new_gradient, 2 * step
        if gained < _CONVERGED * max(1.0, value):
            break
    return weights
