"""Overload benchmark: send a web server several times as many concurrent searches as it has database connections."""

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Final

import httpx2
from django.conf import settings
from prometheus_client.parser import text_string_to_metric_families

from corecube.errors import InvalidRequestError
from retrieval.evaluation.bench.chat import company_key, company_questions, open_connections, run_concurrently
from retrieval.evaluation.bench.corpus import Progress
from retrieval.evaluation.bench.scratch import scratch_database
from retrieval.evaluation.bench.web_server import web_server
from retrieval.evaluation.latency import Percentiles, percentiles

_LIMIT: Final = 100
_TIMEOUT_SECONDS: Final = 60.0  #: Longer than the maximum waiting time and duration of a search.
_WARM_UP: Final = 40


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
    if not (1 <= factor <= _LIMIT and 1 <= rounds <= _LIMIT):
        raise InvalidRequestError(f"The factor and the rounds must be between 1 and {_LIMIT}.")
    at_once = factor * settings.CORECUBE_POOL_CONNECTIONS
    with scratch_database({"samples": True}, keep=False):
        secret, questions = company_key(progress), company_questions()
        with web_server() as server:
            asyncio.run(_send(server.url, secret, questions, count=_WARM_UP, at_once=1))
            sent: list[tuple[str, float]] = []
            started = perf_counter()
            for number in range(rounds):
                sent += asyncio.run(_send(server.url, secret, questions, count=at_once, at_once=at_once))
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


async def _send(
    url: str, secret: str, questions: Sequence[str], *, count: int, at_once: int
) -> list[tuple[str, float]]:
    """Send `count` searches, `at_once` at any time; return each one's status, or error's class, and milliseconds."""

    async def send(client: httpx2.AsyncClient, number: int) -> tuple[str, float]:
        started = perf_counter()
        try:
            answer = await client.post("/api/v1/search", json={"query": questions[number % len(questions)]})
            outcome = str(answer.status_code)
        except httpx2.HTTPError as error:
            outcome = type(error).__name__
        return outcome, (perf_counter() - started) * 1000

    return await run_concurrently(url, secret, send, count=count, at_once=at_once, timeout_seconds=_TIMEOUT_SECONDS)
