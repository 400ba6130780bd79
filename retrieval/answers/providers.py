"""Who writes the answers."""

import uuid
from collections.abc import Sequence
from functools import cache

from django.conf import settings

from corecube.access import Principal
from corecube.overload import waiting_requests
from retrieval.answers.extractive import ExtractiveProvider
from retrieval.answers.threads import AnswerThreads, EndingThreads
from retrieval.encoders.kept_vectors import SentenceEncoder
from retrieval.engine.types import Passage
from retrieval.engine.words import stemmer
from retrieval.llm.routes import models_over
from retrieval.llm.types import Route
from retrieval.search import runtime


def route_for(
    principal: Principal,
    passages: Sequence[Passage],
    record: uuid.UUID | None = None,
    *,
    sentences: SentenceEncoder | None = None,
) -> Route:
    """Return who may answer this principal from these passages; raise ModelMissingError.

    What language models use is noted with the search that `record` names.
    """
    connections = {passage.hit.chunk.connection_id for passage in passages}
    models = models_over(principal, connections, record=record)
    return Route((*models.providers, extractive_provider(sentences)), models.notices)


def extractive_provider(sentences: SentenceEncoder | None) -> ExtractiveProvider:
    """Return the provider that only quotes; without an encoder by the words alone."""
    stem = stemmer(settings.CORECUBE_TEXT_SEARCH_CONFIG)
    return ExtractiveProvider(stem, sentences, answer_threads())


def answer_threads() -> AnswerThreads:
    """Return the threads that answers are made in: few, and their own, so that searches never wait for them."""
    return _threads(settings.CORECUBE_ANSWER_THREADS)


def ending_threads() -> EndingThreads:
    """Return the threads in which answers are counted and checked once their words are out."""
    return _endings(settings.CORECUBE_ANSWER_THREADS)


def _beginnings() -> int:
    """Return how many answers have no first word yet; a search is part of a request, or of a stream that has begun."""
    return max(waiting_requests.count, runtime.admission().wanted) + answer_threads().unfinished


@cache
def _endings(count: int) -> EndingThreads:
    return EndingThreads(count, _beginnings)


@cache
def _threads(count: int) -> AnswerThreads:
    return AnswerThreads(count)
