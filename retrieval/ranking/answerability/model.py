"""Fits from signals to a confidence: the shipped ones, and those on an installation's judged questions. Pure."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Final, Self

from retrieval.ranking.answerability.logistic import LogisticModel, Sample, Signals, fit, uninformed

SENTENCE_COSINE: Final = "sentence_cosine"  #: Absent until the sentences' vectors are stored.
RERANK: Final = "rerank_"  #: Signals of a reranker, one for each type of its scores.
#: What a fit may read; the shipped one reads those that point in the right direction for everyday questions. Other
#: signals are shown; they were found to add nothing.
_SHARED: Final = (
    "coverage_sentence",
    "sentence_lead",
    "quote_lead",
    "cosine_lead",
    "entity_coverage",
    "number_coverage",
    "leg_agreement",
    "denial_unmatched",
    "unknown_share",
)
DOUBTS: Final = frozenset({"denial_unmatched", "unknown_share"})  #: Signals that lower the confidence.
COSINES: Final = ("cosine_best", SENTENCE_COSINE)  #: Signals on the scale of one embedding model.
WITH_SENTENCES: Final = (*_SHARED, *COSINES)
WITHOUT_SENTENCES: Final = tuple(name for name in WITH_SENTENCES if name != SENTENCE_COSINE)
WITHOUT_COSINES: Final = _SHARED


@dataclass(frozen=True, slots=True)
class AnswerabilityModel:
    """Two fits on the same questions, with and without sentence cosines, which a search may have no time for.

    So a missing signal never counts as an average one.
    """

    with_sentences: LogisticModel
    without_sentences: LogisticModel
    is_calibrated: bool = False  #: Whether it was fitted on judged questions of this installation.
    score_type: str = ""  #: The type of the final scores that it was fitted under; empty for any.

    def for_signals(self, signals: Signals) -> LogisticModel:
        """Return the fit that reads what was computed."""
        return self.with_sentences if SENTENCE_COSINE in signals else self.without_sentences

    def confidence(self, signals: Signals) -> float:
        """Return the probability that the passages hold the answer, 0 to 1."""
        return self.for_signals(signals).probability(signals)

    def to_json(self) -> dict[str, Any]:
        """Return what `from_json` reads, less what only the shipped model's file says."""
        return {
            "score_type": self.score_type,
            "with_sentences": asdict(self.with_sentences),
            "without_sentences": asdict(self.without_sentences),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any], *, is_calibrated: bool) -> Self:
        """Return a stored model. Raises KeyError or TypeError for an incomplete one."""
        return cls(
            LogisticModel.from_json(data["with_sentences"]),
            LogisticModel.from_json(data["without_sentences"]),
            is_calibrated,
            data.get("score_type", ""),
        )


@cache
def shipped(encoder: str) -> AnswerabilityModel:
    """Return the model that comes with CoreCube, for signals of the embedding model of this name.

    Its cosines are those of the models that `shipped.json` names; with another one, no cosine is read.
    """
    data = json.loads((files("retrieval.ranking.answerability") / "shipped.json").read_text(encoding="utf-8"))
    if encoder in data["provenance"]["encoders"]:
        return AnswerabilityModel.from_json(data, is_calibrated=False)
    without_cosines = LogisticModel.from_json(data["without_cosines"])
    return AnswerabilityModel(without_cosines, without_cosines)


def fitted(
    samples: Sequence[Sample], *, ridge: float, prior: AnswerabilityModel, score_type: str = ""
) -> AnswerabilityModel:
    """Return both fits on the samples, drawn towards the prior's weights. Expects samples of both kinds.

    A cosine or a reranker's signal that is new to the prior is added, drawn towards 0.
    """
    return AnswerabilityModel(
        fit(samples, ridge=ridge, prior=_widened(prior.with_sentences, samples, WITH_SENTENCES)),
        fit(samples, ridge=ridge, prior=_widened(prior.without_sentences, samples, WITHOUT_SENTENCES)),
        is_calibrated=True,
        score_type=score_type,
    )


def fitted_from_nothing(samples: Sequence[Sample], *, ridge: float) -> AnswerabilityModel:
    """Return both fits on the samples alone, as the shipped model was made."""
    return AnswerabilityModel(
        fit(samples, ridge=ridge, prior=uninformed(samples, WITH_SENTENCES)),
        fit(samples, ridge=ridge, prior=uninformed(samples, WITHOUT_SENTENCES)),
    )


def _widened(prior: LogisticModel, samples: Sequence[Sample], names: Sequence[str]) -> LogisticModel:
    cosines = set(COSINES) & set(names)
    found = {name for it in samples for name in it.signals if name in cosines or name.startswith(RERANK)}
    added = uninformed(samples, sorted(found - prior.weights.keys()))
    return LogisticModel(
        prior.intercept,
        {**prior.weights, **added.weights},
        {**prior.means, **added.means},
        {**prior.scales, **added.scales},
    )
