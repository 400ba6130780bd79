"""Searches of concurrent readers over HTTP, by a separate web server on the scratch database."""

import asyncio
import json
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Final

import httpx2
import numpy as np
from django.conf import settings

from corecube.access import Principal
from corecube.models import ApiKey
from retrieval.evaluation.bench.clients import send_searches
from retrieval.evaluation.bench.corpus import Progress, bench_principal, slug
from retrieval.evaluation.bench.first import READ_MODEL_DIRS
from retrieval.evaluation.bench.plan import Plan, connections_in
from retrieval.evaluation.bench.processes import CpuMeter
from retrieval.evaluation.bench.web_server import WebServer, web_server
from retrieval.evaluation.bench.workload import SyntheticQuery, sample_queries
from retrieval.evaluation.latency import Percentiles, percentiles
from retrieval.models import SearchRecord

#: Makes the web server with the vectors of the queries, and the environment variable with its arguments in JSON.
FACTORY: Final = "retrieval.evaluation.bench.web_application:application"
ARGUMENTS: Final = "CORECUBE_BENCH_ARGUMENTS"
_WARM_UP: Final = 100
_WARM_UP_READERS: Final = 4
_OK: Final = str(httpx2.codes.OK.value)


@dataclass(frozen=True, slots=True)
class ReadersFigures:
    """Searches of a number of readers, each of which sends the next search when it has received an answer."""

    readers: int
    searches: int
    per_second: float  #: Answered searches.
    latency_ms: Percentiles  #: Of answered searches, from the request to the complete response.
    cpu_ms: Mapping[str, float]  #: As `CpuMeter.per_search`: "own" is the web server, without the readers.
    failed: Mapping[str, int]


def search_over_http(plan: Plan, percent: int, progress: Progress) -> tuple[ReadersFigures, ...]:
    """Return the figures of each number of readers in a scope; every query is sent once, after a warm-up."""
    principal = bench_principal()
    queries = sample_queries(plan, percent, _WARM_UP + plan.queries * len(plan.readers))
    key, secret = ApiKey.issue(user=principal.user, name="bench")
    try:
        with _server(queries, processes=plan.web_processes) as server:
            return tuple(_figures(server, secret, plan, percent, queries, progress))
    finally:
        _forget(principal, key)


def _figures(
    server: WebServer, secret: str, plan: Plan, percent: int, queries: Sequence[SyntheticQuery], progress: Progress
) -> Iterator[ReadersFigures]:
    scope = {"include": [slug(number) for number in connections_in(percent)]}
    bodies = iter([{"query": it.text, "preset": plan.preset, "scope": scope} for it in queries])
    first = [next(bodies) for _ in range(_WARM_UP)]
    asyncio.run(send_searches(server.url, secret, first, at_once=_WARM_UP_READERS))
    for place, readers in enumerate(plan.readers):
        progress(f"{readers} readers", place, len(plan.readers))
        meter, started = CpuMeter(server.pid), perf_counter()
        batch = [next(bodies) for _ in range(plan.queries)]
        sent = asyncio.run(send_searches(server.url, secret, batch, at_once=readers))
        seconds = perf_counter() - started
        answered = [milliseconds for outcome, milliseconds in sent if outcome == _OK]
        yield ReadersFigures(
            readers=readers,
            searches=len(sent),
            per_second=round(len(answered) / seconds, 2),
            latency_ms=percentiles(answered),
            cpu_ms=meter.per_search(len(sent)),
            failed=Counter(outcome for outcome, _ in sent if outcome != _OK),
        )


@contextmanager
def _server(queries: Sequence[SyntheticQuery], *, processes: int) -> Iterator[WebServer]:
    with tempfile.TemporaryDirectory(prefix="corecube-bench-") as folder:
        vectors = Path(folder, "queries.npz")
        np.savez(vectors, texts=[it.text for it in queries], vectors=np.stack([it.vector for it in queries]))
        arguments = {name: str(getattr(settings, name)) for name in READ_MODEL_DIRS} | {"vectors": str(vectors)}
        with web_server(FACTORY, processes=processes, environment={ARGUMENTS: json.dumps(arguments)}) as server:
            yield server


def _forget(principal: Principal, key: ApiKey) -> None:
    SearchRecord.objects.filter(user=principal.user).delete()
    key.delete()
