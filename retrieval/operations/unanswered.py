"""Questions whose answer was a refusal, by topic."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from corecube.data import read_toml
from retrieval.models import SearchRecord
from retrieval.models.search import FLAGS
from retrieval.text.language import common_words

_MAX_READ: Final = 500  #: The latest refusals that are grouped.
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
    """Refused questions that share a term."""

    term: str  #: In lower case and without the plural's s; empty for questions that share none.
    count: int  #: How often they were asked.
    example: str  #: The question of the topic that was asked most often.


def refused_questions(since: datetime) -> list[str]:
    """Return the latest refused questions since a time, at most 500; none where their text is not stored."""
    found = SearchRecord.objects.filter(FLAGS["refused"], at__gte=since).exclude(query="")
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
    return Topic(term, questions.total(), questions.most_common(1)[0][0])


def _terms(question: str) -> frozenset[str]:
    words = (word for word in _TERM.findall(question.casefold()) if len(word) >= _MIN_TERM_LENGTH)
    return frozenset(re.sub(r"(?<=\w{3})(?<!s)s$", "", word) for word in words if word not in _LIGHT)
