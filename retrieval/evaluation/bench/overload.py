"""Asking a real web server for four times as many searches at once as it has connections: who is answered, and when."""

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
from retrieval.evaluation.bench.chat import company_key, company_questions, open_connections
from retrieval.evaluation.bench.corpus import Progress
from retrieval.evaluation.bench.scratch import scratch_database
from retrieval.evaluation.bench.web_server import web_server
from retrieval.evaluation.latency import Percentiles, percentiles

_LIMIT: Final = 100
#: Longer than a search may wait and take together.
_PATIENCE_SECONDS: Final = 60.0
_WARM_UP: Final = 40


@dataclass(frozen=True, slots=True)
class Sent:
    """One request and what became of it."""

    #: The HTTP status, or the class of the error that kept an answer from coming.
    outcome: str
    milliseconds: float


@dataclass(frozen=True, slots=True)
class OverloadReport:
    """One run's figures."""

    connections: int
    #: Requests that were sent in the same instant, again and again.
    at_once: int
    rounds: int
    seconds: float
    #: How many requests ended with which status or error.
    outcomes: Mapping[str, int]
    #: Milliseconds from a request to its answer, by outcome.
    milliseconds: Mapping[str, Percentiles]
    #: What the server tells of itself afterwards, by the metric's name.
    metrics: Mapping[str, float]
    #: Its connections afterwards, and those of them at work.
    opened: int
    at_work: int


def bench_overload(factor: int, *, rounds: int, progress: Progress) -> OverloadReport:
    """Ask `factor` times the pool at once, `rounds` times, and return the figures; raise InvalidRequestError."""
    if not (1 <= factor <= _LIMIT and 1 <= rounds <= _LIMIT):
        raise InvalidRequestError(f"The factor and the rounds must be between 1 and {_LIMIT}.")
    at_once = factor * settings.CORECUBE_POOL_CONNECTIONS
    with scratch_database({"samples": True}, keep=False):
        secret, questions = company_key(progress), company_questions()
        with web_server() as server:
            asyncio.run(_send(server.url, secret, questions, count=_WARM_UP, at_once=1))
            sent: list[Sent] = []
            began = perf_counter()
            for number in range(rounds):
                sent += asyncio.run(_send(server.url, secret, questions, count=at_once, at_once=at_once))
                progress("ask", number + 1, rounds)
            seconds = perf_counter() - began
            metrics = _metrics(server.url, secret)
            opened, at_work = open_connections()
    outcomes = Counter(it.outcome for it in sent)
    times = {name: percentiles([it.milliseconds for it in sent if it.outcome == name]) for name in outcomes}
    return OverloadReport(
        settings.CORECUBE_POOL_CONNECTIONS, at_once, rounds, seconds, outcomes, times, metrics, opened, at_work
    )


async def _send(url: str, secret: str, questions: Sequence[str], *, count: int, at_once: int) -> list[Sent]:
    """Send so many searches, so many of them at any time."""
    waiting = iter(range(count))
    sent: list[Sent] = []
    limits = httpx2.Limits(max_connections=at_once, max_keepalive_connections=at_once)
    async with httpx2.AsyncClient(
        base_url=url,
        headers={"Authorization": f"Bearer {secret}"},
        timeout=_PATIENCE_SECONDS,
        limits=limits,
        trust_env=False,
    ) as client:

        async def sender() -> None:
            for number in waiting:
                one = await _one(client, questions[number % len(questions)])
                sent.append(one)

        await asyncio.gather(*(sender() for _ in range(at_once)))
    return sent


async def _one(client: httpx2.AsyncClient, question: str) -> Sent:
    began = perf_counter()
    try:
        answer = await client.post("/api/v1/search", json={"query": question})
        outcome = str(answer.status_code)
    except httpx2.HTTPError as error:
        outcome = type(error).__name__
    return Sent(outcome, (perf_counter() - began) * 1000)


def _metrics(url: str, secret: str) -> Mapping[str, float]:
    answer = httpx2.get(f"{url}/metrics", headers={"Authorization": f"Bearer {secret}"}, trust_env=False)
    families = (it for it in text_string_to_metric_families(answer.text) if it.type in {"counter", "gauge"})
    samples = (sample for family in families for sample in family.samples)
    return {" ".join((it.name, *it.labels.values())): it.value for it in samples}
