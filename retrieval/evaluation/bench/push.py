"""Benchmark of pushing and indexing many small documents, in a scratch database: documents per second, memory.

Each request runs through the complete web server except its socket. The requests index the first tenth of the documents
directly; a sync by a worker in this process indexes the others.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice
from time import perf_counter
from typing import Any, Final
from uuid import uuid4

import numpy as np
from django.core.handlers.wsgi import WSGIHandler
from django.test import RequestFactory

from corecube.errors import CoreCubeError, InvalidRequestError
from corecube.models import ApiKey, Compartment, Connection, User
from retrieval.encoders.admission import memory
from retrieval.evaluation.bench.corpus import Progress
from retrieval.evaluation.bench.scratch import scratch_database
from retrieval.ingest.dispatch import complete_next, list_next, process_next
from retrieval.models import Document, Sync

_NAME: Final = "bench-push"
_LIMIT: Final = 1_000_000
_MINIMUM: Final = 100
_POINTS: Final = 10
_AT_ONCE_SHARE: Final = 10
#: The words of a text: a few plain ones, and numbers below this; smaller numbers are more frequent.
_NUMBERS: Final = 5_000
_PAIRS_EACH: Final = (5, 20)
_PLAIN: Final = (
    *("pump", "valve", "lamp", "gear", "hall", "crane", "seal", "night", "log", "shift"),
    *("order", "check", "plan", "note", "part", "table", "round", "report", "test", "list"),
)


@dataclass(frozen=True, slots=True)
class PushPoint:
    """A measuring point of a phase."""

    documents: int
    documents_per_second: float  #: Since the previous point.
    rss_bytes: int  #: Resident memory of this process, in bytes, without the server and the parsing process.


@dataclass(frozen=True, slots=True)
class PushPhase:
    """A phase with up to ten measuring points."""

    name: str
    documents: int
    seconds: float
    points: tuple[PushPoint, ...]

    @property
    def grown_bytes(self) -> int:
        """Memory growth after the first fifth, in which models are loaded and caches filled."""
        settled = next((it for it in self.points if it.documents * 5 >= self.documents), self.points[-1])
        return self.points[-1].rss_bytes - settled.rss_bytes


@dataclass(frozen=True, slots=True)
class PushReport:
    """The figures of a run."""

    documents: int
    chunks: int
    failed: int
    phases: tuple[PushPhase, ...]


def bench_push(documents: int, *, seed: int, progress: Progress) -> PushReport:
    """Push and index documents and return the figures; raise InvalidRequestError for too few or too many."""
    if not _MINIMUM <= documents <= _LIMIT:
        raise InvalidRequestError(f"Documents must be between {_MINIMUM:,} and {_LIMIT:,}.")
    with scratch_database({"push": documents, "seed": seed}, keep=False):
        user = User.objects.create_user(_NAME, is_staff=True, is_superuser=True)
        compartment = Compartment.objects.create(slug=_NAME, name=_NAME)
        connection = Connection.objects.create(slug=_NAME, name=_NAME, kind="push", compartment=compartment)
        secret = ApiKey.issue(user=user, name=_NAME)[1]
        texts = enumerate(_texts(seed))
        at_once = documents // _AT_ONCE_SHARE
        push = partial(_push, WSGIHandler(), secret)
        later = documents - at_once
        pushed = (
            _pushed("pushed at once", islice(texts, at_once), at_once, partial(push, wait=True), progress),
            _pushed("pushed for later", islice(texts, later), later, push, progress),
        )
        clock, worker = _Clock("indexed by a sync", later, progress), uuid4()
        syncs = Sync.objects.filter(connection=connection)
        while list_next(worker) or process_next(worker) or complete_next():
            clock.note(sum(syncs.values_list("added", flat=True)))
        phases = (*pushed, clock.phase())
        sync = Sync.objects.filter(connection=connection).first()
        stored = Document.objects.filter(connection=connection)
        return PushReport(
            documents=stored.count(),
            chunks=stored.values_list("chunks").count(),
            failed=sync.failed if sync else 0,
            phases=phases,
        )


def _texts(seed: int) -> Iterator[str]:
    random = np.random.default_rng(seed)
    shares = 1 / np.arange(10, _NUMBERS + 10)
    shares /= shares.sum()
    while True:
        count = int(random.integers(*_PAIRS_EACH))
        words, numbers = random.choice(_PLAIN, size=count), random.choice(_NUMBERS, size=count, p=shares)
        yield " ".join(f"{word} {number}" for word, number in zip(words, numbers, strict=True))


def _push(handler: WSGIHandler, secret: str, number: int, text: str, *, wait: bool = False) -> None:
    """Send a document, without Django's test client, which stores a kilobyte per request."""
    request = RequestFactory().put(
        "/api/v1/documents",
        data=json.dumps(
            {"connection": _NAME, "external_id": f"{number}.txt", "title": text[:40], "text": text, "wait": wait}
        ),
        content_type="application/json",
        headers={"authorization": f"Bearer {secret}", "host": "localhost"},
    )
    # The response has its status: `start_response` has nothing to do.
    response: Any = handler(request.environ, lambda *_: bytes.__len__)
    response.close()
    if response.status_code not in {200, 202}:
        raise CoreCubeError(f"A push failed with status {response.status_code}.")


def _pushed(
    name: str, texts: Iterator[tuple[int, str]], total: int, push: Callable[[int, str], None], progress: Progress
) -> PushPhase:
    clock = _Clock(name, total, progress)
    for done, (number, text) in enumerate(texts, start=1):
        push(number, text)
        clock.note(done)
    return clock.phase()


class _Clock:
    def __init__(self, name: str, total: int, progress: Progress) -> None:
        self._name, self._total, self._progress = name, total, progress
        self._started = self._last = perf_counter()
        self._points: list[PushPoint] = []

    def note(self, done: int) -> None:
        self._progress(self._name, done, self._total)
        before = self._points[-1].documents if self._points else 0
        is_last = done >= self._total
        if done == before or (done * _POINTS // self._total == before * _POINTS // self._total and not is_last):
            return
        now = perf_counter()
        self._points.append(PushPoint(done, (done - before) / (now - self._last), memory().used))
        self._last = now

    def phase(self) -> PushPhase:
        return PushPhase(self._name, self._total, perf_counter() - self._started, tuple(self._points))
