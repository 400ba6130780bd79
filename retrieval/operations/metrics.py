"""`/metrics`: this process's load and latencies for Prometheus. For admins; numbers only."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Final, TypeVar

from django.conf import settings
from django.db import Error
from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from prometheus_client import CollectorRegistry, Metric, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from corecube.access import Principal
from corecube.api import failure_response, principal_of_key
from corecube.errors import CoreCubeError, RefusedForNowError
from corecube.keys import USER_HEADER
from corecube.models import User
from corecube.overload import overload_guard
from corecube.replicas import Problem, Replicas, replicas
from retrieval.encoders.admission import IngestLoad, ingest_load
from retrieval.encoders.breaker import BreakerState
from retrieval.engine.admission import Load
from retrieval.engine.admission_ladder import Refusal, Rung
from retrieval.operations.backups import backup_status
from retrieval.presets.catalog import preset_named
from retrieval.presets.consolidated.config import ConsolidatedConfig
from retrieval.presets.consolidated.evidence.density import DensityConfig
from retrieval.presets.consolidated.evidence.rerank_guard import CutRate, RerankGuards
from retrieval.search import runtime
from retrieval.search.configuration import configuration_of
from retrieval.search.evidence_runs import PRESET
from retrieval.search.record import SEARCH_SECONDS, STAGE_SECONDS

_RUNGS: Final = tuple(Rung)  #: The rungs from the lowest on; a gauge reports the number.
_BREAKERS: Final = (BreakerState.CLOSED, BreakerState.HALF_OPEN, BreakerState.OPEN)

_Label = TypeVar("_Label", bound=str)
REGISTRY: Final = CollectorRegistry()


class LoadCollector(Collector):
    """Reads the figures that the process has at the time of a scrape."""

    def collect(self) -> Iterator[Metric]:
        """Yield the figures of searches, ingests, memory and reranking."""
        yield from load_metrics(runtime.admission().load())
        yield from ingest_metrics(ingest_load(settings.CORECUBE_EMBED_CONCURRENCY))
        config = configuration_of(preset_named(PRESET)).config
        density = config.density if isinstance(config, ConsolidatedConfig) else DensityConfig()
        yield from rerank_metrics(runtime.rerank_guards, density)
        yield from backup_metrics()
        yield from replica_metrics(replicas())

    def describe(self) -> Iterable[Metric]:
        """Return nothing, so that registering reads no figure."""
        return ()


ProcessCollector(registry=REGISTRY)
for _collector in (LoadCollector(), SEARCH_SECONDS, STAGE_SECONDS):
    REGISTRY.register(_collector)


@require_safe
@never_cache
def metrics(request: HttpRequest) -> HttpResponse:
    """Tell an admin's browser, or a program with an admin's API key, the figures; for others there is nothing here."""
    try:
        if not _is_admin(request):
            raise Http404
    except RefusedForNowError as error:
        return failure_response(request, error)
    encode, content_type = choose_encoder(request.headers.get("Accept", ""))
    return HttpResponse(encode(REGISTRY), content_type=content_type)


def _is_admin(request: HttpRequest) -> bool:
    given = request.headers.get("Authorization")
    try:
        if given is not None:
            return principal_of_key(given, request.headers.get(USER_HEADER)).is_admin
    except RefusedForNowError:
        raise
    except CoreCubeError:
        return False
    return isinstance(request.user, User) and Principal(request.user).is_admin


def load_metrics(load: Load) -> Iterator[Metric]:
    """Yield the figures of searches and connections; every reason of a refusal is there, so that none appears late."""
    refused = {reason: load.refused.get(reason, 0) for reason in Refusal}
    yield _gauge("pool_connections", "Maximum database connections of this process.", load.connections)
    yield _gauge("pool_connections_configured", "Configured maximum of database connections.", load.wished)
    yield _gauge("pool_connections_active", "Database connections in use.", load.active)
    yield _gauge("ladder_rung", "Load level: 0 is normal, 5 is a full pool.", _RUNGS.index(load.rung))
    yield _gauge("search_slots", "Maximum concurrent searches.", load.slots)
    yield _gauge("search_slots_held", "Search slots in use.", load.held)
    yield _gauge("searches_waiting", "Searches waiting for a slot or a CPU turn.", load.waiting)
    yield _gauge("recovery_slots", "Maximum concurrent recovery queries.", load.recovery_slots)
    yield _gauge("recovery_slots_held", "Running recovery queries.", load.recovery_held)
    yield _counter("queries_admitted", "Admitted queries.", load.admitted)
    yield _by_label(CounterMetricFamily, "queries_refused", "Refused queries.", "reason", refused)
    yield _counter("requests_refused", "API requests refused because of overload.", overload_guard.refused)
    yield _counter("recovery_skipped", "Aborted searches without recovery.", load.recovery_skipped)
    yield _gauge("search_wait_max_seconds", "Maximum wait for a slot and a CPU turn.", load.max_wait_seconds)


def ingest_metrics(load: IngestLoad) -> Iterator[Metric]:
    """Yield the figures of ingests and memory."""
    yield _gauge("ingest_slots", "Maximum concurrent embedding calls of this process.", load.slots)
    yield _gauge("ingest_slots_held", "Running embedding calls.", load.held)
    yield _gauge("ingest_calls_configured", "Configured concurrent embedding calls of a sync.", load.configured)
    yield _gauge("ingest_calls_allowed", "Concurrent calls of a sync that memory allows.", load.allowed)
    yield _gauge("memory_used_bytes", "Resident memory of this process.", load.memory.used)
    yield _gauge("memory_in_use_bytes", "Memory in use by all processes.", load.memory.in_use)
    yield _gauge("memory_limit_bytes", "Memory limit; 0 if unknown.", load.memory.limit)


def backup_metrics() -> Iterator[Metric]:
    """Yield the time of the last good backup; nothing without one, or without the database."""
    with suppress(Error):
        if good := backup_status().last_good:
            at = good.started_at.timestamp()
            yield _gauge("backup_last_success_timestamp_seconds", "Time of the last good backup.", at)


def replica_metrics(found: Replicas) -> Iterator[Metric]:
    """Yield the figures of read replicas; every reason is there, so that none appears late."""
    fallbacks = {problem: found.fallbacks[problem] for problem in Problem if problem}
    lags = {it.alias: it.lag_seconds for it in found.each}
    known = {alias: seconds for alias, seconds in lags.items() if seconds is not None}
    reads = {it.alias: found.reads[it.alias] for it in found.each}
    yield _by_label(CounterMetricFamily, "replica_reads", "Reads of a replica.", "replica", reads)
    meaning = "Reads of the primary instead of a replica."
    yield _by_label(CounterMetricFamily, "replica_fallbacks", meaning, "reason", fallbacks)
    yield _by_label(GaugeMetricFamily, "replica_lag_seconds", "Age of its content, at most.", "replica", known)


def rerank_metrics(guards: RerankGuards, config: DensityConfig) -> Iterator[Metric]:
    """Yield the figures of searches for evidence: what scored pools, what was skipped, how often tails were cut."""
    gauge, counter = GaugeMetricFamily, CounterMetricFamily
    figures, rates = guards.figures, guards.figures.cut_rates(config)
    breakers = {name: _BREAKERS.index(state) for name, state in guards.states.items()}
    chunk_seconds = {name: milliseconds / 1000 for name, milliseconds in guards.chunk_ms.items()}
    band = f"1 if the share of cut searches is within {config.rate_from:g} to {config.rate_to:g}."
    yield _by_label(gauge, "rerank_breaker", "Breaker: 0 closed, 1 half open, 2 open.", "reranker", breakers)
    yield _by_label(gauge, "rerank_chunk_seconds", "Expected time per chunk.", "reranker", chunk_seconds)
    yield _by_label(counter, "rerank_pools", "Pools by rerank provider.", "provider", figures.providers)
    yield _by_label(counter, "rerank_skips", "Pools without a cross-encoder.", "reason", figures.skips)
    yield _by_label(counter, "tighten_searches", "Section searches.", "section", _each(rates, "searches"))
    yield _by_label(counter, "tighten_cuts", "Section searches with a cut tail.", "section", _each(rates, "cut"))
    yield _by_label(gauge, "tighten_rate_in_band", band, "section", _each(rates, "is_in_band"))


def _each(rates: Mapping[str, CutRate], name: str) -> dict[str, float]:
    return {section: float(getattr(rate, name)) for section, rate in rates.items()}


def _by_label(
    family: type[GaugeMetricFamily | CounterMetricFamily],
    name: str,
    meaning: str,
    label: str,
    figures: Mapping[_Label, float],
) -> Metric:
    metric = family(f"corecube_{name}", meaning, labels=(label,))
    for value, figure in figures.items():
        metric.add_metric((str(value),), figure)
    return metric


def _gauge(name: str, meaning: str, value: float) -> Metric:
    return GaugeMetricFamily(f"corecube_{name}", meaning, value)


def _counter(name: str, meaning: str, value: float) -> Metric:
    return CounterMetricFamily(f"corecube_{name}", meaning, value)
