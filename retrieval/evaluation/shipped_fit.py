"""Fit the two models that come with CoreCube: the order of quotes and answerability.

Both learn from questions with known answers. Every figure is measured with the question's collection left out.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

import numpy as np

from corecube.access import Principal, ScopeRequest, user_named
from corecube.models import Connection
from retrieval.answers.answering import run_cosines
from retrieval.answers.extractive import ASSERTED, MAX_CHARACTERS
from retrieval.answers.quoting import choose
from retrieval.engine.types import RunCosines, Verdict
from retrieval.evaluation.answerability_figures import Measured, weighted
from retrieval.evaluation.answers import AnswerQuestion, is_right, share_met
from retrieval.evaluation.calibration import calibration_error
from retrieval.evaluation.corpus import evaluation_principal
from retrieval.evaluation.runner import without_judge
from retrieval.index import active
from retrieval.models import SearchRecord
from retrieval.ranking.answerability.logistic import LogisticModel, Sample, Signals, fit, uninformed
from retrieval.ranking.answerability.model import (
    DOUBTS,
    WITH_SENTENCES,
    WITHOUT_COSINES,
    WITHOUT_SENTENCES,
    AnswerabilityModel,
    shipped,
)
from retrieval.ranking.answerability.verdict import AnswerabilityConfig, verdict_of
from retrieval.ranking.packing import by_number
from retrieval.ranking.quotes.candidates import Candidate, candidates
from retrieval.ranking.quotes.fitting import Choice, fit_order
from retrieval.ranking.quotes.ranker import VECTOR_SIGNALS, WORD_SIGNALS, Asking, QuoteRanker, Scored, word_signals
from retrieval.search import runtime
from retrieval.search.outcome import SearchOutcome
from retrieval.search.request import SearchRequest
from retrieval.search.service import search

_TOP_K: Final = 10
_RIDGE: Final = 20.0
_WEIGHT: Final = 1_000.0  #: Total weight of a fit's samples, which the ridge is measured by.
#: Shares of the weight: questions with an answer in their collection, without one, both over another collection, and
#: those of a judged collection.
_SHARES: Final = (0.76, 0.14, 0.07, 0.03)
Searches = Sequence["Searched"]


@dataclass(frozen=True, slots=True)
class Searched:
    """A question and its search, over its collection or over another one, which does not answer it."""

    question: AnswerQuestion
    outcome: SearchOutcome
    is_foreign: bool
    cosines: RunCosines

    @property
    def is_answerable(self) -> bool:
        """Whether it has an answer there, which the search may have missed."""
        return bool(self.question.requirements) and not self.is_foreign

    @property
    def is_answered(self) -> bool:
        """Whether its passages hold the answer."""
        text = "\n".join(passage.hit.chunk.text for passage in self.outcome.passages)
        return self.is_answerable and share_met(text, self.question.requirements) == 1


def ask_all(
    questions: Sequence[AnswerQuestion],
    connections: Mapping[str, Connection],
    *,
    preset: str,
    progress: Callable[[], None] = lambda: None,
) -> tuple[Searched, ...]:
    """Search for every question in its collection, and for those of a collection in another one too.

    Raises InvalidRequestError for an unknown asker.
    """
    names = sorted(connections)
    others = dict(zip(names, [*names[1:], *names[:1]], strict=True)) if len(names) > 1 else {}
    found = []
    for question in questions:
        found.append(_searched(question, connections.get(question.collection), preset))
        if question.requirements and question.collection in others:
            other = connections[others[question.collection]]
            found.append(replace(_searched(question, other, preset), is_foreign=True))
        progress()
    SearchRecord.objects.filter(user=evaluation_principal().user).delete()
    return tuple(found)


def _searched(question: AnswerQuestion, connection: Connection | None, preset: str) -> Searched:
    principal = Principal(user_named(question.asker)) if question.asker else evaluation_principal()
    scope = ScopeRequest(include=(connection.slug,) if connection else ())
    request = SearchRequest(text=question.text, preset=preset, top_k=_TOP_K, narrowing=scope)
    resources = without_judge(runtime.resources(active.encoder()))
    outcome = search(request, principal=principal, resources=resources)
    return Searched(question, outcome, is_foreign=False, cosines=run_cosines(outcome, resources))


def fitted_ranker(searches: Searches) -> QuoteRanker:
    """Return the order of candidates, learned from the questions whose passages hold the answer."""
    answered = [it for it in searches if it.is_answered]
    choices = [(it, found, _word_choice(it, found)) for it in answered if (found := _candidates(it))]
    by_words = fit_order([choice for _, _, choice in choices if choice.is_informative], WORD_SIGNALS)
    ranker = QuoteRanker(by_words, by_words)
    again = (_vector_choice(it, ranker.best_first(found, _asking(it)), ranker) for it, found, _ in choices)
    return QuoteRanker(by_words, fit_order([choice for choice in again if choice.is_informative], VECTOR_SIGNALS))


def _candidates(searched: Searched) -> tuple[Candidate, ...]:
    return candidates(by_number(searched.outcome.passages), searched.question.text, _asking(searched).language)


def _asking(searched: Searched) -> Asking:
    return Asking.of(searched.question.text, searched.outcome.state.terms)


def _word_choice(searched: Searched, found: Sequence[Candidate]) -> Choice:
    return _choice(searched, found, word_signals(found, _asking(searched)))


def _vector_choice(searched: Searched, ranked: Sequence[Scored], ranker: QuoteRanker) -> Choice:
    best = [it for it in ranker.again(ranked, searched.cosines) if "cosine" in it.signals]
    return _choice(searched, [it.candidate for it in best], [it.signals for it in best])


def _choice(searched: Searched, found: Sequence[Candidate], signals: Sequence[Signals]) -> Choice:
    """Return the candidates with those that meet most requirements as the answers."""
    met = [share_met(it.text, searched.question.requirements) for it in found]
    return Choice(signals, [0 < share == max(met) for share in met])


def fitted_verdict(
    searches: Searches, judged: Sequence[Measured], prior: AnswerabilityModel | None = None
) -> AnswerabilityModel:
    """Return both fits on the questions and on a judged collection; signals that point the wrong way are left out.

    The weights are drawn towards those of a `prior`, which learned from other questions, or to 0.
    """
    samples = _weighted(searches, judged)
    return AnswerabilityModel(
        _fitted(samples, WITH_SENTENCES, prior.with_sentences if prior else None),
        _fitted(samples, WITHOUT_SENTENCES, prior.without_sentences if prior else None),
    )


def fitted_without_cosines(
    searches: Searches, judged: Sequence[Measured], prior: LogisticModel | None = None
) -> LogisticModel:
    """Return the fit for other embedding models, whose cosines are on another scale."""
    return _fitted(_weighted(searches, judged), WITHOUT_COSINES, prior)


def _weighted(searches: Searches, judged: Sequence[Measured]) -> list[Sample]:
    own = [it for it in searches if not it.is_foreign and it.is_answered == it.is_answerable]
    groups = [
        _samples([it for it in own if it.is_answered]),
        _samples([it for it in own if not it.is_answered]),
        _samples([it for it in searches if it.is_foreign]),
        weighted(judged),
    ]
    return [
        replace(sample, weight=sample.weight * share * _WEIGHT / sum(it.weight for it in group))
        for share, group in zip(_SHARES, groups, strict=True)
        for sample in group
    ]


def _samples(searches: Searches) -> list[Sample]:
    judged = ((it, it.outcome.state.answerability) for it in searches)
    return [Sample(answerability.signals, it.is_answered) for it, answerability in judged if answerability]


def _fitted(samples: Sequence[Sample], names: Sequence[str], prior: LogisticModel | None = None) -> LogisticModel:
    model = fit(samples, ridge=_RIDGE, prior=_widened(prior, uninformed(samples, names)))
    wrong = {name: abs(weight) for name, weight in model.weights.items() if (weight > 0) == (name in DOUBTS)}
    if not wrong:
        return model
    worst = max(wrong, key=wrong.__getitem__)
    return _fitted(samples, [name for name in names if name != worst], prior)


def _widened(prior: LogisticModel | None, new: LogisticModel) -> LogisticModel:
    """Return a prior for the signals of a new one, which is taken for the signals that the prior has not."""
    if prior is None:
        return new
    own = [name for name in new.weights if name in prior.weights]
    return LogisticModel(
        prior.intercept,
        {**new.weights, **{name: prior.weights[name] for name in own}},
        {**new.means, **{name: prior.means[name] for name in own}},
        {**new.scales, **{name: prior.scales[name] for name in own}},
    )


def left_out(searches: Searches, judged: Sequence[Measured]) -> dict[str, Any]:
    """Return the figures of each collection, by models that were fitted on the others."""
    collections = sorted({it.question.collection for it in searches})
    found = {}
    for name in collections:
        others = [it for it in searches if it.question.collection != name]
        own = [it for it in searches if it.question.collection == name and not it.is_foreign]
        ranker, model = fitted_ranker(others), fitted_verdict(others, judged)
        found[name] = _figures(own, ranker, model)
    return found


def _figures(own: Searches, ranker: QuoteRanker, model: AnswerabilityModel) -> dict[str, float | int]:
    right = sum(is_right(_answer(it, ranker), it.question.requirements) for it in own)
    judged = [(it, it.outcome.state.answerability) for it in own]
    confidences = np.array([model.confidence(verdict.signals) if verdict else 0.0 for _, verdict in judged])
    answerable = np.array([it.is_answerable for it in own])
    verdicts = [verdict_of(float(it), AnswerabilityConfig(), model.without_sentences.weights) for it in confidences]
    asserted = np.array([it is Verdict.ANSWERABLE for it in verdicts])
    refused = np.array([it is Verdict.NOT_ANSWERABLE for it in verdicts])
    return {
        "answerable": int(answerable.sum()),
        "right": right,
        "hedged": int((answerable & ~asserted & ~refused).sum()),
        "refused": int((answerable & refused).sum()),
        "unanswerable": int((~answerable).sum()),
        "not_asserted": int((~answerable & ~asserted).sum()),
        "ece": round(calibration_error(confidences, answerable), 4),
    }


def _answer(searched: Searched, ranker: QuoteRanker) -> str:
    ranked = ranker.again(ranker.best_first(_candidates(searched), _asking(searched)), searched.cosines)
    return "\n\n".join(quote.text for quote in choose(ranked, max_characters=MAX_CHARACTERS - len(ASSERTED)))


def report(searches: Searches, judged: Sequence[Measured]) -> dict[str, Any]:
    """Return the figures and both models, as their files hold them: the verdict learns on from the shipped one."""
    words_alone = shipped("").with_sentences
    return {
        "left_out": left_out(searches, judged),
        "quotes": asdict(fitted_ranker(searches)),
        "answerability": {
            **fitted_verdict(searches, judged, shipped(active.encoder().name)).to_json(),
            "without_cosines": asdict(fitted_without_cosines(searches, judged, words_alone)),
        },
    }
