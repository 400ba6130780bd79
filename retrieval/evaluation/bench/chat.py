"""Streaming many answers at once from a real web server on the sample company: time to the first word, memory.

No language model is asked: the extractive answerer writes. The readers share the machine with the server and with
its database.
"""

import asyncio
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Final

from django.conf import settings
from django.contrib.auth.models import Group
from django.db import connection

from corecube.errors import InvalidRequestError
from corecube.models import ApiKey, User
from corecube.people import ADMINISTRATORS
from retrieval.evaluation.bench.chat_load import Reading, read_all
from retrieval.evaluation.bench.corpus import Progress
from retrieval.evaluation.bench.scratch import scratch_database
from retrieval.evaluation.bench.web_server import WebServer, web_server
from retrieval.evaluation.latency import Percentiles, percentiles
from retrieval.ingest.samples import Company, add_samples

_NAME: Final = "bench-chat"
_LIMIT: Final = 1_000_000
_MAX_AT_ONCE: Final = 1_000
#: Answers at the most that one reader alone asks for, to see what an answer takes on an idle server.
_ALONE: Final = 40
_POINTS: Final = 10

_OPEN: Final = """
SELECT count(*), count(*) FILTER (WHERE state <> 'idle')
FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'
"""


@dataclass(frozen=True, slots=True)
class ChatPhase:
    """Answers that were read by so many readers at once."""

    name: str
    streams: int
    answers: int
    seconds: float
    #: Milliseconds from the request to the first word of an answer: of all answers, and of those among them for which
    #: all readers ask in the same moment; and to the end.
    first_ms: Percentiles
    joining_ms: Percentiles
    total_ms: Percentiles
    #: What the server's process computed for one answer, in milliseconds of one core.
    cpu_ms: float
    #: How many answers failed, by how.
    errors: Mapping[str, int]
    #: How many answers were made with less than all, by what was left out.
    degraded: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class ChatPoint:
    """The server after so many answers."""

    answers: int
    rss_bytes: int
    threads: int


@dataclass(frozen=True, slots=True)
class ChatReport:
    """One run's figures."""

    phases: tuple[ChatPhase, ...]
    points: tuple[ChatPoint, ...]
    #: The server's connections to the database afterwards, and those of them that were at work or in a transaction.
    connections: int
    connections_in_use: int

    @property
    def grown_bytes(self) -> int:
        """What memory grew by after the first fifth, in which models are loaded and caches filled."""
        limit = self.points[-1].answers
        settled = next(point for point in self.points if point.answers * 5 >= limit)
        return self.points[-1].rss_bytes - settled.rss_bytes


def bench_chat(answers: int, *, streams: int, progress: Progress) -> ChatReport:
    """Ask for so many answers, `streams` at a time, and return the figures; raise InvalidRequestError out of range."""
    if not 1 <= streams <= _MAX_AT_ONCE:
        raise InvalidRequestError(f"Streams must be between 1 and {_MAX_AT_ONCE:,}.")
    if not streams <= answers <= _LIMIT:
        raise InvalidRequestError(f"Answers must be between the number of streams and {_LIMIT:,}.")
    with scratch_database({"samples": True}, keep=False):
        secret = company_key(progress)
        with web_server() as server:
            crowd = _Crowd(server, secret, company_questions(), progress)
            few = min(answers, _ALONE)
            crowd.read("warm-up", few, streams=1)
            phases = (crowd.read("alone", few, streams=1), crowd.read("crowd", answers, streams))
            opened, at_work = open_connections()
            return ChatReport(phases, tuple(crowd.points), opened, at_work)


def company_key(progress: Progress) -> str:
    """Take the sample company in, and return the key of somebody who may see all of it."""
    company = Company.read(settings.CORECUBE_SAMPLES_DIR)
    connections = len(company.connections)
    add_samples(company, lambda sync: progress(f"take in {sync.connection.name}", 0, connections))
    user = User.objects.create_user(_NAME, is_staff=True, is_superuser=True)
    user.groups.add(Group.objects.get(name=ADMINISTRATORS))
    return ApiKey.issue(user=user, name=_NAME)[1]


def company_questions() -> Sequence[str]:
    """Return the questions that come with the samples."""
    text = (settings.CORECUBE_SAMPLES_DIR / "company.toml").read_text(encoding="utf-8")
    return [row["text"] for row in tomllib.loads(text)["question"]]


def open_connections() -> tuple[int, int]:
    """Return the connections of others to the database, and those of them at work or in a transaction."""
    with connection.cursor() as cursor:
        cursor.execute(_OPEN)
        opened, at_work = cursor.fetchone()
        return int(opened), int(at_work)


class _Crowd:
    """Readers of one server."""

    def __init__(self, server: WebServer, secret: str, questions: Sequence[str], progress: Progress) -> None:
        self._server, self._secret, self._questions, self._progress = server, secret, questions, progress
        self.points: list[ChatPoint] = []

    def read(self, name: str, answers: int, streams: int) -> ChatPhase:
        """Return the figures of one phase; the points are those of the latest."""
        before, began = self._server.figures(), perf_counter()
        readings = asyncio.run(self._readings(name, answers, streams))
        seconds, used = perf_counter() - began, self._server.figures().cpu_seconds - before.cpu_seconds
        whole = [reading for reading in readings if not reading.error]
        return ChatPhase(
            name=name,
            streams=streams,
            answers=answers,
            seconds=seconds,
            first_ms=percentiles([reading.first_ms for reading in whole]),
            joining_ms=percentiles([reading.first_ms for reading in whole if reading.is_joining]),
            total_ms=percentiles([reading.total_ms for reading in whole]),
            cpu_ms=used * 1000 / answers,
            errors=Counter(reading.error for reading in readings if reading.error),
            degraded=Counter(code for reading in whole for code in reading.degraded),
        )

    async def _readings(self, name: str, answers: int, streams: int) -> list[Reading]:
        self.points = []
        finished = 0

        def done() -> None:
            nonlocal finished
            finished += 1
            self._progress(name, finished, answers)
            if finished * _POINTS // answers > len(self.points):
                figures = self._server.figures()
                self.points.append(ChatPoint(finished, figures.rss_bytes, figures.threads))

        return await read_all(
            self._server.url, self._secret, self._questions, count=answers, at_once=streams, done=done
        )
