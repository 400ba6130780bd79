"""Logistic regression on named signals: a probability, and what each signal added to its log-odds. Pure."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Signals = Mapping[str, float]

_MAX_STEPS: Final = 100
_MAX_HALVINGS: Final = 30
_CONVERGED: Final = 1e-10  #: A Newton step that lowers the loss by less than this is the last.
_MIN_SCALE: Final = 1e-6  #: Signals that vary less than this are not scaled.


@dataclass(frozen=True, slots=True)
class LogisticModel:
    """Weights on standardised signals: log-odds = intercept + sum of weight x (value - mean) / scale.

    An absent signal adds nothing, as if it had its mean; one without a weight is not read.
    """

    intercept: float
    weights: Mapping[str, float]
    means: Mapping[str, float]
    scales: Mapping[str, float]

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Return a stored model; raises KeyError or TypeError for an incomplete one."""
        weights = {name: float(weight) for name, weight in dict(data["weights"]).items()}
        means = {name: float(data["means"][name]) for name in weights}
        return cls(float(data["intercept"]), weights, means, {name: float(data["scales"][name]) for name in weights})

    def contributions(self, signals: Signals) -> dict[str, float]:
        """Return what each present signal adds to the log-odds, in the order of the weights."""
        return {
            name: weight * (signals[name] - self.means[name]) / self.scales[name]
            for name, weight in self.weights.items()
            if name in signals
        }

    def log_odds(self, signals: Signals) -> float:
        """Return the intercept and all contributions together."""
        return self.intercept + math.fsum(self.contributions(signals).values())

    def probability(self, signals: Signals) -> float:
        """Return the log-odds as a probability, 0 to 1."""
        return logistic(self.log_odds(signals))


def logistic(log_odds: float) -> float:
    """Return 1 / (1 + exp(-log_odds)), without overflow at either end."""
    if log_odds >= 0:
        return 1 / (1 + math.exp(-log_odds))
    odds = math.exp(log_odds)
    return odds / (1 + odds)


@dataclass(frozen=True, slots=True)
class Sample:
    """One judged question's signals."""

    signals: Signals
    answerable: bool
    weight: float = 1.0  #: How much it counts.


def fit(samples: Sequence[Sample], *, ridge: float, prior: LogisticModel) -> LogisticModel:
    """Return the weights with the lowest penalised log-loss on the samples, found by Newton's method (IRLS).

    The loss is the weighted sum of log-losses plus ridge / 2 times the squared distance of the weights from the
    prior's; the intercept is free. Means and scales are the prior's, so that few samples stay near it. Expects
    samples of both kinds.
    """
    names = list(prior.weights)
    # A missing signal counts as its mean.
    rows = (
        [(it.signals[name] - prior.means[name]) / prior.scales[name] if name in it.signals else 0.0 for name in names]
        for it in samples
    )
    matrix = np.array([[1.0, *row] for row in rows], dtype=np.float64)
    labels = np.array([sample.answerable for sample in samples], dtype=np.float64)
    counts = np.array([sample.weight for sample in samples], dtype=np.float64)
    centre = np.array([0.0, *prior.weights.values()])
    penalty = np.array([0.0, *(ridge for _ in names)])
    found = _newton(_Loss(matrix, labels, counts, centre, penalty), start=np.array([prior.intercept, *centre[1:]]))
    weights = dict(zip(names, map(float, found[1:]), strict=True))
    return LogisticModel(float(found[0]), weights, prior.means, prior.scales)


def uninformed(samples: Sequence[Sample], names: Sequence[str]) -> LogisticModel:
    """Return a prior without knowledge: weights of 0, means and standard deviations of the samples.

    Both are over the samples that have the signal; one that no sample has gets mean 0 and scale 1.
    """
    means, scales = dict[str, float](), dict[str, float]()
    for name in names:
        having = [sample for sample in samples if name in sample.signals]
        values = np.array([sample.signals[name] for sample in having])
        counts = np.array([sample.weight for sample in having])
        mean = float(np.average(values, weights=counts)) if having else 0.0
        spread = math.sqrt(float(np.average((values - mean) ** 2, weights=counts))) if having else 1.0
        means[name], scales[name] = mean, spread if spread >= _MIN_SCALE else 1.0
    return LogisticModel(0.0, dict.fromkeys(names, 0.0), means, scales)


@dataclass(frozen=True, slots=True)
class _Loss:
    matrix: Floats
    labels: Floats
    counts: Floats
    centre: Floats
    penalty: Floats

    def value(self, weights: Floats) -> float:
        log_odds = self.matrix @ weights
        # log(1 + exp(z)) - y z is the log-loss of a log-odds z.
        losses = np.logaddexp(0.0, log_odds) - self.labels * log_odds
        return float(self.counts @ losses + 0.5 * self.penalty @ (weights - self.centre) ** 2)

    def step(self, weights: Floats) -> Floats:
        """Return Newton's step: the inverse Hessian times the gradient."""
        shares = 0.5 * (1 + np.tanh(0.5 * (self.matrix @ weights)))
        gradient = self.matrix.T @ (self.counts * (shares - self.labels)) + self.penalty * (weights - self.centre)
        curvature = self.counts * shares * (1 - shares)
        hessian = (self.matrix.T * curvature) @ self.matrix + np.diag(self.penalty)
        return np.asarray(np.linalg.lstsq(hessian, gradient, rcond=None)[0], dtype=np.float64)


def _newton(loss: _Loss, *, start: Floats) -> Floats:
    """Return the weights at the loss's minimum; a step that overshoots is halved."""
    weights, value = start, loss.value(start)
    for _ in range(_MAX_STEPS):
        step, share = loss.step(weights), 1.0
        for _ in range(_MAX_HALVINGS):
            if loss.value(weights - share * step) <= value:
                break
            share /= 2
        weights = weights - share * step
        gained, value = value - loss.value(weights), loss.value(weights)
        if gained < _CONVERGED:
            break
    return weights
