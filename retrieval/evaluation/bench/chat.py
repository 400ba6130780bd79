"""Benchmark of many concurrent streamed answers of a real web server on the sample company: first token, memory.

The answers are quotes, without a language model. The readers run on the same machine as the server and its database.
Overload: the server gets several times as many concurrent searches as it has database connections.
"""

import asyncio
import json
import tomllib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import cycle, islice
from time import perf_counter, sleep
from typing import Any, Final

import httpx2
from django.conf import settings
from django.contrib.auth.models import Group
from django.db import connection
from prometheus_client.parser import text_string_to_metric_families

from corecube.errors import InvalidRequestError
from corecube.models import ApiKey, User
from corecube.people import ADMINISTRATORS
from retrieval.evaluation.bench.clients import run_concurrently, send_searches
from retrieval.evaluation.bench.corpus import Progress
from retrieval.evaluation.bench.scratch import scratch_database
from retrieval.evaluation.bench.web_server import WebServer, web_server
from retrieval.evaluation.latency import Percentiles, percentiles
from retrieval.ingest.samples import Company, add_samples

_TIMEOUT_SECONDS: Final = 120.0
_DATA: Final = "data: "
_NAME: Final = "bench-chat"
_LIMIT: Final = 1_000_000
_MAX_STREAMS: Final = 1_000
_ALONE: Final = 40  #: Maximum number of answers for a single reader, which measure an idle server.
_POINTS: Final = 10
_OPEN: Final = """
SELECT count(*), count(*) FILTER (WHERE state <> 'idle')
FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'
"""
_MAX_FACTOR: Final = 100
_WARM_UP_SEARCHES: Final = 40
_SETTLED_SECONDS: Final = 10.0  #: Time in which a server has written what it writes after its answers.


@dataclass(frozen=True, slots=True)
class Reading:
    """The figures of one streamed answer."""

    first_ms: float = 0.0  #: Time from the request to the first token, and to the end; 0 if it did not arrive.
    total_ms: float = 0.0
    error: str = ""  #: Empty for a complete answer.
    degraded: tuple[str, ...] = ()
    is_joining: bool = False  #: Whether it is its reader's first, which all readers request at the same time.


async def read_all(
    url: str, secret: str, questions: Sequence[str], *, count: int, at_once: int, done: Callable[[], None]
) -> list[Reading]:
    """Send `count` questions in turn, each of `at_once` readers one after the other; call `done` after each answer."""

    async def read(client: httpx2.AsyncClient, number: int) -> Reading:
        reading = await _read(client, questions[number % len(questions)])
        done()
        return replace(reading, is_joining=number < at_once)

    return await run_concurrently(url, secret, read, count=count, at_once=at_once, timeout_seconds=_TIMEOUT_SECONDS)


async def _read(client: httpx2.AsyncClient, question: str) -> Reading:
    body = {"model": "corecube", "messages": [{"role": "user", "content": question}], "stream": True}
    started, first, degraded = perf_counter(), 0.0, ()
    try:
        async with client.stream("POST", "/v1/chat/completions", json=body) as answer:
            if answer.status_code != httpx2.codes.OK:
                return Reading(error=f"status {answer.status_code}")
            async for line in answer.aiter_lines():
                if line == "data: [DONE]":
                    return Reading(first, _since(started), degraded=degraded)
                chunk: dict[str, Any] = json.loads(line.removeprefix(_DATA)) if line.startswith(_DATA) else {}
                if "error" in chunk:
                    return Reading(first, error=chunk["error"]["code"])
                has_text = any(choice["delta"].get("content") for choice in chunk.get("choices", ()))
                first = first or (_since(started) if has_text else 0.0)
                degraded = tuple(chunk.get("corecube", {}).get("degraded", degraded))
    except httpx2.HTTPError as error:
        return Reading(first, error=type(error).__name__)
    return Reading(first, error="cut off")


def _since(started: float) -> float:
    return (perf_counter() - started) * 1000


@dataclass(frozen=True, slots=True)
class ChatPhase:
    """Answers to a number of concurrent readers."""

    name: str
    streams: int
    answers: int
    seconds: float
    #: Milliseconds from the request to the first token: of all answers, and of each reader's first one, which all
    #: readers request at the same time; and to the end.
    first_ms: Percentiles
    joining_ms: Percentiles
    total_ms: Percentiles
    cpu_ms: float  #: CPU time of the server's process per answer, in milliseconds of one core.
    errors: Mapping[str, int]
    degraded: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class ChatPoint:
    """The server after a number of answers."""

    answers: int
    rss_bytes: int
    threads: int


@dataclass(frozen=True, slots=True)
class ChatReport:
    """The figures of a run."""

    phases: tuple[ChatPhase, ...]
    points: tuple[ChatPoint, ...]
    #: The server's database connections afterwards, and those of them that were busy or in a transaction.
    connections: int
    connections_in_use: int

    @property
    def grown_bytes(self) -> int:
        """Memory growth after the first fifth, in which models are loaded and caches filled."""
        limit = self.points[-1].answers
        settled = next(point for point in self.points if point.answers * 5 >= limit)
        return self.points[-1].rss_bytes - settled.rss_bytes


def bench_chat(answers: int, *, streams: int, progress: Progress) -> ChatReport:
    """Request answers, `streams` at a time, and return the figures; raise InvalidRequestError out of range."""
    if not 1 <= streams <= _MAX_STREAMS:
        raise InvalidRequestError(f"Streams must be between 1 and {_MAX_STREAMS:,}.")
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
    """Ingest the sample company, and return an API key with access to all of it."""
    company = Company.read(settings.CORECUBE_SAMPLES_DIR)
    connections = len(company.connections)
    add_samples(company, lambda sync: progress(f"ingest {sync.connection.name}", 0, connections))
    user = User.objects.create_user(_NAME, is_staff=True, is_superuser=True)
    user.groups.add(Group.objects.get(name=ADMINISTRATORS))
    return ApiKey.issue(user=user, name=_NAME)[1]


def company_questions() -> Sequence[str]:
    """Return the questions of the samples."""
    text = (settings.CORECUBE_SAMPLES_DIR / "company.toml").read_text(encoding="utf-8")
    return [row["text"] for row in tomllib.loads(text)["question"]]


def open_connections() -> tuple[int, int]:
    """Return the other connections to the database, and those of them that are busy or in a transaction.

    A server writes its records after its answers: it has `_SETTLED_SECONDS` to finish.
    """
    deadline = perf_counter() + _SETTLED_SECONDS
    with connection.cursor() as cursor:
        while True:
            cursor.execute(_OPEN)
            opened, at_work = cursor.fetchone()
            if not at_work or perf_counter() > deadline:
                return int(opened), int(at_work)
            sleep(0.05)


class _Crowd:
    def __init__(self, server: WebServer, secret: str, questions: Sequence[str], progress: Progress) -> None:
        self._server, self._secret, self._questions, self._progress = server, secret, questions, progress
        self.points: list[ChatPoint] = []

    def read(self, name: str, answers: int, streams: int) -> ChatPhase:
        """Return the figures of a phase; `points` are those of the latest."""
        before, started = self._server.figures(), perf_counter()
        readings = asyncio.run(self._readings(name, answers, streams))
        seconds, used = perf_counter() - started, self._server.figures().cpu_seconds - before.cpu_seconds
        complete = [reading for reading in readings if not reading.error]
        return ChatPhase(
            name=name,
            streams=streams,
            answers=answers,
            seconds=seconds,
            first_ms=percentiles([reading.first_ms for reading in complete]),
            joining_ms=percentiles([reading.first_ms for reading in complete if reading.is_joining]),
            total_ms=percentiles([reading.total_ms for reading in complete]),
            cpu_ms=used * 1000 / answers,
            errors=Counter(reading.error for reading in readings if reading.error),
            degraded=Counter(code for reading in complete for code in reading.degraded),
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


@dataclass(frozen=True, slots=True)
class OverloadReport:
    """The figures of a run."""

    connections: int
    at_once: int
    rounds: int
    seconds: float
    outcomes: Mapping[str, int]
    milliseconds: Mapping[str, Percentiles]  #: Milliseconds from a request to its response, by outcome.
    metrics: Mapping[str, float]
    opened: int
    at_work: int


def bench_overload(factor: int, *, rounds: int, progress: Progress) -> OverloadReport:
    """Send `factor` times the pool size at once, `rounds` times, and return the figures; raise InvalidRequestError."""
    if not (1 <= factor <= _MAX_FACTOR and 1 <= rounds <= _MAX_FACTOR):
        raise InvalidRequestError(f"The factor and the rounds must be between 1 and {_MAX_FACTOR}.")
    at_once = factor * settings.CORECUBE_POOL_CONNECTIONS
    with scratch_database({"samples": True}, keep=False):
        secret, questions = company_key(progress), company_questions()
        with web_server() as server:
            asyncio.run(send_searches(server.url, secret, _bodies(questions, _WARM_UP_SEARCHES), at_once=1))
            sent: list[tuple[str, float]] = []
            started = perf_counter()
            for number in range(rounds):
                sent += asyncio.run(send_searches(server.url, secret, _bodies(questions, at_once), at_once=at_once))
                progress("send", number + 1, rounds)
            seconds = perf_counter() - started
            answer = httpx2.get(f"{server.url}/metrics", headers={"Authorization": f"Bearer {secret}"}, trust_env=False)
            families = (it for it in text_string_to_metric_families(answer.text) if it.type in {"counter", "gauge"})
            samples = (sample for family in families for sample in family.samples)
            metrics = {" ".join((it.name, *it.labels.values())): it.value for it in samples}
            opened, at_work = open_connections()
    outcomes = Counter(outcome for outcome, _ in sent)
    times = {name: percentiles([took for outcome, took in sent if outcome == name]) for name in outcomes}
    return OverloadReport(
        settings.CORECUBE_POOL_CONNECTIONS, at_once, rounds, seconds, outcomes, times, metrics, opened, at_work
    )


def _bodies(questions: Sequence[str], count: int) -> list[dict[str, str]]:
    return [{"query": text} for text in islice(cycle(questions), count)]
