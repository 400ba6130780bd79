"""Asking questions that have no answer, in every way that a question can have none, through the production path."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, Final

from corecube.access import Principal, ScopeRequest
from retrieval.evaluation.answerability_figures import Condition, Measured
from retrieval.evaluation.corpus import evaluation_principal
from retrieval.evaluation.datasets import Dataset, read_lines
from retrieval.evaluation.scattered import ScatteredCorpus, scattered
from retrieval.models import Document, SearchRecord
from retrieval.search.outcome import SearchOutcome
from retrieval.search.request import SearchRequest
from retrieval.search.service import search

_SEED: Final = 7


@dataclass(frozen=True, slots=True)
class Question:
    """A question of a judged collection."""

    text: str
    #: Documents that answer it; none when it has no answer.
    answers: tuple[str, ...]
    #: The document that it is about.
    about: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """How a collection is asked."""

    preset: str
    #: Answerable questions, and questions without an answer, that are taken at most.
    max_questions: int
    #: Called after every document and every search.
    progress: Callable[[], None]


@dataclass(frozen=True, slots=True)
class Result:
    """All questions of a survey."""

    measured: tuple[Measured, ...]
    #: Answerable questions whose passages the search did not find: what was packed does not answer them.
    missed: int
    corpus: ScatteredCorpus


def survey(dataset: Dataset, others: Sequence[Dataset], how: Survey) -> Result:
    """Ask a collection's questions under every condition, and those of others; its documents are ingested first."""
    principal = evaluation_principal()
    corpus = scattered(dataset, how.progress)
    ask = _Asker(corpus, principal, how)
    try:
        found = [*ask.judged(dataset), *(it for other in others for it in ask.foreign(other))]
    finally:
        SearchRecord.objects.filter(user=principal.user).delete()
    return Result(tuple(it for it in found if it is not None), sum(it is None for it in found), corpus)


def questions_of(dataset: Dataset) -> tuple[Question, ...]:
    """Return a collection's questions; `metadata.is_impossible` marks one without an answer, `paragraph` its place."""
    return tuple(
        _question(row, dataset.qrels.get(row["_id"], {})) for row in read_lines(dataset.directory / "queries.jsonl")
    )


def _question(row: Mapping[str, Any], grades: Mapping[str, int]) -> Question:
    metadata = row.get("metadata") or {}
    judged = () if metadata.get("is_impossible") else tuple(name for name, grade in grades.items() if grade > 0)
    return Question(str(row.get("text", "")), judged, str(metadata.get("paragraph") or (judged or ("",))[0]))


@dataclass(frozen=True, slots=True)
class _Asker:
    """Asks one collection."""

    corpus: ScatteredCorpus
    principal: Principal
    how: Survey

    def judged(self, dataset: Dataset) -> Iterator[Measured | None]:
        """Yield the collection's own questions under each condition; None for one whose passages were not found."""
        questions = questions_of(dataset)
        for question in self._sampled([it for it in questions if it.answers]):
            group = self._topic(question)
            outcome = self._search(question.text, self.corpus.without(()))
            yield _measured(Condition.ANSWERABLE, group, outcome) if self._answers(outcome, question) else None
            removed = self._search(question.text, self.corpus.without(question.answers))
            yield _measured(Condition.PASSAGE_REMOVED, group, removed)
            whole = self.corpus.of_same_title(question.answers)
            if whole > set(question.answers):
                removed = self._search(question.text, self.corpus.without(whole))
                yield _measured(Condition.ARTICLE_REMOVED, group, removed)
        for question in self._sampled([it for it in questions if not it.answers]):
            outcome = self._search(question.text, self.corpus.without(()))
            yield _measured(Condition.ADVERSARIAL, self._topic(question), outcome)

    def foreign(self, dataset: Dataset) -> Iterator[Measured]:
        """Yield another collection's questions."""
        for number, query in enumerate(dataset.queries):
            outcome = self._search(query.text, self.corpus.without(()))
            yield _measured(Condition.OTHER_DOMAIN, f"{dataset.name} {number}", outcome)

    def _sampled(self, questions: Sequence[Question]) -> list[Question]:
        return Random(_SEED).sample(questions, min(len(questions), self.how.max_questions))  # noqa: S311 -- no secret

    def _topic(self, question: Question) -> str:
        return self.corpus.titles.get(question.about) or question.about or question.text

    def _search(self, text: str, narrowing: ScopeRequest) -> SearchOutcome:
        request = SearchRequest(text=text, preset=self.how.preset, narrowing=narrowing)
        outcome = search(request, principal=self.principal)
        self.how.progress()
        return outcome

    def _answers(self, outcome: SearchOutcome, question: Question) -> bool:
        packed = [passage.hit.chunk_id.document_id for passage in outcome.passages]
        names = Document.objects.filter(pk__in=packed).values_list("external_id", flat=True)
        return not set(question.answers).isdisjoint(names)


def _measured(condition: Condition, group: str, outcome: SearchOutcome) -> Measured:
    judged = outcome.state.answerability
    return Measured(condition, group, judged.signals if judged else {})
