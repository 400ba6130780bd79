"""Search for answerable and unanswerable questions of every kind through the production path."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Final

from corecube.access import Principal, ScopeRequest
from corecube.models import Connection
from retrieval.evaluation.answerability_figures import Condition, Measured
from retrieval.evaluation.corpus import ScatteredCorpus, encode_sentences, evaluation_principal, scattered
from retrieval.evaluation.datasets import Dataset, read_lines
from retrieval.models import Document, SearchRecord
from retrieval.search.outcome import SearchOutcome
from retrieval.search.request import SearchRequest
from retrieval.search.service import search

_SEED: Final = 7


@dataclass(frozen=True, slots=True)
class Question:
    """A question of a judged collection."""

    text: str
    answers: tuple[str, ...]  #: Documents that answer it; empty without an answer.
    about: str  #: The document of its topic.


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """The options of a survey."""

    preset: str
    max_questions: int
    progress: Callable[[], None]


@dataclass(frozen=True, slots=True)
class Result:
    """All questions of a survey."""

    measured: tuple[Measured, ...]
    missed: int  #: Answerable questions whose packed passages do not contain the answer.
    corpus: ScatteredCorpus


def survey(dataset: Dataset, others: Sequence[Dataset], how: Survey) -> Result:
    """Ingest a collection and search for its questions under every condition, and for those of other collections."""
    principal = evaluation_principal()
    corpus = scattered(dataset, how.progress)
    encode_sentences(Connection.objects.filter(slug__in=corpus.slugs.values()))
    ask = _Asker(corpus, principal, how)
    try:
        found = [*ask.judged(dataset), *(it for other in others for it in ask.foreign(other))]
    finally:
        SearchRecord.objects.filter(user=principal.user).delete()
    return Result(tuple(it for it in found if it is not None), sum(it is None for it in found), corpus)


def questions_of(dataset: Dataset) -> tuple[Question, ...]:
    """Return a collection's questions; `metadata.is_impossible` marks one without an answer, `paragraph` its topic."""
    found: list[Question] = []
    for row in read_lines(dataset.directory / "queries.jsonl"):
        metadata = row.get("metadata") or {}
        grades = {} if metadata.get("is_impossible") else dataset.qrels.get(row["_id"], {})
        answers = tuple(name for name, grade in grades.items() if grade > 0)
        about = str(metadata.get("paragraph") or (answers or ("",))[0])
        found.append(Question(str(row.get("text", "")), answers, about))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class _Asker:
    corpus: ScatteredCorpus
    principal: Principal
    how: Survey

    def judged(self, dataset: Dataset) -> Iterator[Measured | None]:
        """Yield the collection's questions under each condition; None for one whose passages were not found."""
        questions = questions_of(dataset)
        for question in self._sampled([it for it in questions if it.answers]):
            group = self._topic(question)
            outcome = self._search(question.text, self.corpus.without(()))
            yield _measured(Condition.ANSWERABLE, group, outcome) if self._answers(outcome, question) else None
            removed = self._search(question.text, self.corpus.without(question.answers))
            yield _measured(Condition.PASSAGE_REMOVED, group, removed)
            article = self.corpus.of_same_title(question.answers)
            if article > set(question.answers):
                removed = self._search(question.text, self.corpus.without(article))
                yield _measured(Condition.ARTICLE_REMOVED, group, removed)
        for question in self._sampled([it for it in questions if not it.answers]):
            outcome = self._search(question.text, self.corpus.without(()))
            yield _measured(Condition.ADVERSARIAL, self._topic(question), outcome)

    def foreign(self, dataset: Dataset) -> Iterator[Measured]:
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
