"""Questions without a good answer, by topic, with the documents that came nearest."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from corecube.data import read_toml
from corecube.models import Connection
from corecube.scope import AccessScope
from retrieval.models import Document, SearchRecord
from retrieval.records.stored_trace import chunk_id_of
from retrieval.text.language import common_words

_MAX_READ: Final = 500  #: The latest questions that are grouped.
_NEAR: Final = 3  #: The first hits of a search that count as near.
_SHOWN: Final = 3  #: Documents and connections of a topic.
_MIN_TERM_LENGTH: Final = 3
_MIN_QUESTIONS: Final = 2  #: Different questions that make a topic.
_TERM: Final = re.compile(r"\w[\w-]*\w")
#: Words that are no topic, of all languages.
_LIGHT: Final = frozenset[str]().union(
    *(
        common_words(language) | frozenset(f"{words['first']} {words['other']}".split())
        for language, words in read_toml("retrieval.text", "question_words.toml").items()
    )
)


@dataclass(frozen=True, slots=True)
class Topic:
    """Unanswered questions that share a term."""

    term: str  #: In lower case and without the plural's s; empty for questions that share none.
    count: int  #: How often they were asked.
    questions: tuple[str, ...]  #: The different questions, the most frequent first.

    @property
    def example(self) -> str:
        """The most frequent question of the topic."""
        return self.questions[0]


@dataclass(frozen=True, slots=True)
class UnansweredTopic:
    """A topic with what the searches of its questions found."""

    topic: Topic
    #: The documents among the first hits of most of its searches, each with the number of these searches.
    nearest: tuple[tuple[Document, int], ...]
    #: The connections of all documents found, with their share of them: where an answer would be expected.
    sources: tuple[tuple[Connection, float], ...]


def unanswered(since: datetime, *, scope: AccessScope, limit: int) -> tuple[UnansweredTopic, ...]:
    """Return the topics of refused questions and of those with low confidence, with what was nearest in scope.

    Reads the latest 500 of them.
    """
    rows = SearchRecord.objects.unanswered().filter(at__gte=since)
    found: dict[str, list[set[UUID]]] = {}
    for query, ranking in rows.values_list("query", "trace__ranking")[:_MAX_READ]:
        near = {chunk_id_of(chunk).document_id for chunk, _ in (ranking or ())[:_NEAR]}
        found.setdefault(" ".join(query.split()), []).append(near)
    asked = [query for query, searches in found.items() for _ in searches]
    known = {document for searches in found.values() for near in searches for document in near}
    listed = Document.objects.in_scope(scope).filter(connection__is_attached=False)
    documents = listed.select_related("connection").in_bulk(known)
    return tuple(
        _with_nearest(topic, [near for query in topic.questions for near in found[query]], documents)
        for topic in topics(asked, limit=limit)
    )


def _with_nearest(topic: Topic, searches: Sequence[set[UUID]], documents: Mapping[UUID, Document]) -> UnansweredTopic:
    counts = Counter(documents[it] for near in searches for it in near if it in documents)
    sources = Counter[Connection]()
    for document, number in counts.items():
        sources[document.connection] += number
    shares = ((it, number / counts.total()) for it, number in sources.most_common(_SHOWN))
    return UnansweredTopic(topic, tuple(counts.most_common(_SHOWN)), tuple(shares))


def unanswered_questions(since: datetime) -> list[str]:
    """Return the latest unanswered questions since a time, at most 500; none where their text is not stored."""
    found = SearchRecord.objects.unanswered().filter(at__gte=since)
    return list(found.values_list("query", flat=True)[:_MAX_READ])


def topics(questions: Sequence[str], *, limit: int) -> tuple[Topic, ...]:
    """Return the topics with the most questions, at most `limit`, and last those questions that are in none.

    A topic is the term that most of the different questions share that no earlier topic has; ties go to the longer
    term. Each question is in one topic.
    """
    return tuple(_topics(Counter(" ".join(it.split()) for it in questions), limit))


def _topics(left: Counter[str], limit: int) -> Iterator[Topic]:
    terms = {question: _terms(question) for question in left}
    for _ in range(limit):
        shared = Counter(term for question in left for term in terms[question])
        term, count = max(shared.items(), key=lambda it: (it[1], len(it[0]), it[0]), default=("", 0))
        if count < _MIN_QUESTIONS:
            break
        topic = Counter({question: times for question, times in left.items() if term in terms[question]})
        left = left - topic
        yield _topic(term, topic)
    if left:
        yield _topic("", left)


def _topic(term: str, questions: Counter[str]) -> Topic:
    return Topic(term, questions.total(), tuple(it for it, _ in questions.most_common()))


def _terms(question: str) -> frozenset[str]:
    words = (word for word in _TERM.findall(question.casefold()) if len(word) >= _MIN_TERM_LENGTH)
    return frozenset(re.sub(r"(?<=\w{3})(?<!s)s$", "", word) for word in words if word not in _LIGHT)
