"""The providers and threads that write answers."""

import uuid
from collections.abc import Sequence
from functools import cache

from django.conf import settings

from corecube.access import Principal
from corecube.overload import waiting_requests
from retrieval.answers.extractive import ExtractiveProvider
from retrieval.answers.threads import AnswerThreads, EndingThreads
from retrieval.engine.types import Passage
from retrieval.llm.routes import models_over
from retrieval.llm.types import Route
from retrieval.search import runtime


def route_for(
    principal: Principal,
    passages: Sequence[Passage],
    record: uuid.UUID | None = None,
    *,
    preferred: str = "",
    usage_ids: list[int] | None = None,
) -> Route:
    """Return the providers that may answer this principal from these passages; raise ModelMissingError.

    `record` is the search whose record stores the usage of language models; `preferred` and `usage_ids` are those of
    `models_over`.
    """
    connections = {passage.hit.chunk.connection_id for passage in passages}
    models = models_over(principal, connections, record=record, usage_ids=usage_ids, preferred=preferred)
    quotes = ExtractiveProvider(answer_threads())
    return Route((*models.providers, quotes), models.notices)


def answer_threads() -> AnswerThreads:
    """Return the threads that write answers: a small separate pool, so that searches never wait for them."""
    return _threads(settings.CORECUBE_ANSWER_THREADS)


def ending_threads() -> EndingThreads:
    """Return the threads that count and check answers after their text is sent."""
    return _endings(settings.CORECUBE_ANSWER_THREADS)


@cache
def _endings(count: int) -> EndingThreads:
    def waiting_for_first_token() -> int:
        return max(waiting_requests.count, runtime.admission().wanted) + answer_threads().unfinished

    return EndingThreads(count, waiting_for_first_token)


@cache
def _threads(count: int) -> AnswerThreads:
    return AnswerThreads(count)
