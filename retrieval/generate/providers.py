"""Who writes the answers."""

import uuid
from collections.abc import Sequence
from functools import cache

from django.conf import settings

from corecube.access import Principal
from retrieval import runtime
from retrieval.generate.extractive import ExtractiveProvider
from retrieval.generate.routes import route
from retrieval.generate.threads import AnswerThreads
from retrieval.generate.types import Route
from retrieval.generate.words import stemmer
from retrieval.types import Passage


def route_for(principal: Principal, passages: Sequence[Passage], record: uuid.UUID | None = None) -> Route:
    """Return who may answer this principal from these passages; raise ModelMissingError.

    What language models use is noted with the search that `record` names.
    """
    return route(principal, passages, quoting=extractive_provider, record=record)


def extractive_provider() -> ExtractiveProvider:
    """Return the provider that only quotes; raise ModelMissingError."""
    stem = stemmer(settings.CORECUBE_TEXT_SEARCH_CONFIG)
    return ExtractiveProvider(stem, runtime.sentence_encoder(), answer_threads())


def answer_threads() -> AnswerThreads:
    """Return the threads that answers are made in: few, and their own, so that searches never wait for them."""
    return _threads(settings.CORECUBE_ANSWER_THREADS)


@cache
def _threads(count: int) -> AnswerThreads:
    return AnswerThreads(count)
