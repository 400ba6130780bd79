"""/metrics: this process's load for a monitoring system, in Prometheus's text format. For admins; numbers only."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeVar

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from corecube.access import Principal
from corecube.api import principal_of_key, refused
from corecube.door import door
from corecube.errors import CoreCubeError, RefusedForNowError
from corecube.forwarding import USER_HEADER
from corecube.models import User
from retrieval.encoders.admission import IngestLoad, ingest_load
from retrieval.encoders.breaker import BreakerState
from retrieval.engine.admission import Load
from retrieval.engine.admission_ladder import Refusal, Rung
from retrieval.presets.catalog import preset_named
from retrieval.presets.consolidated.config import ConsolidatedConfig
from retrieval.presets.consolidated.evidence.config import DensityConfig
from retrieval.presets.consolidated.evidence.rerank_figures import CutRate
from retrieval.presets.consolidated.evidence.rerank_guard import RerankGuards
from retrieval.search import runtime
from retrieval.search.configuration import configuration_of
from retrieval.search.evidence_runs import PRESET

_CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
#: The rungs from the lowest on; a gauge tells the number.
_RUNGS: Final = tuple(Rung)
_BREAKERS: Final = (BreakerState.CLOSED, BreakerState.HALF_OPEN, BreakerState.OPEN)

_Label = TypeVar("_Label", bound=str)


@dataclass(frozen=True, slots=True)
class Metric:
    """A figure with its meaning."""

    name: str
    #: "gauge" or "counter".
    kind: str
    help: str
    #: Without labels, or by the value of the one label.
    value: float = 0.0
    label: str = ""
    by_label: Mapping[str, float] = field(default_factory=dict)


@require_safe
@never_cache
def metrics(request: HttpRequest) -> HttpResponse:
    """Tell an admin's browser, or a program with an admin's API key, the figures; for others there is nothing here."""
    try:
        if not _is_admin(request):
            raise Http404
    except RefusedForNowError as error:
        return refused(request, error)
    load, ingest = runtime.admission().load(), ingest_load(settings.CORECUBE_EMBED_CONCURRENCY)
    reranking = rerank_metrics(runtime.rerank_guards, _live_density())
    text = exposition((*load_metrics(load), *ingest_metrics(ingest), *reranking))
    return HttpResponse(text, content_type=_CONTENT_TYPE)


def _live_density() -> DensityConfig:
    """Return the numbers by which searches for evidence cut tails off now."""
    config = configuration_of(preset_named(PRESET)).config
    return config.density if isinstance(config, ConsolidatedConfig) else DensityConfig()


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


def exposition(metrics: Sequence[Metric]) -> str:
    """Return metrics as Prometheus reads them, in order, each with its help and kind."""
    return "\n".join((*(line for metric in metrics for line in _lines(metric)), ""))


def _lines(metric: Metric) -> Iterator[str]:
    yield f"# HELP {metric.name} {metric.help}"
    yield f"# TYPE {metric.name} {metric.kind}"
    if not metric.label:
        yield f"{metric.name} {metric.value:.12g}"
    for value, figure in metric.by_label.items():
        yield f'{metric.name}{{{metric.label}="{_escaped(value)}"}} {figure:.12g}'


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def load_metrics(load: Load) -> tuple[Metric, ...]:
    """Return the figures of searches and connections; every reason of a refusal is there, so that none appears late."""
    turned_away = {reason.value: load.refused.get(reason, 0) for reason in Refusal}
    return (
        _gauge("pool_connections", "Database connections that this process may hold.", load.connections),
        _gauge("pool_connections_wished", "Those that it is configured to hold.", load.wished),
        _gauge("pool_connections_at_work", "Those at work.", load.active),
        _gauge("ladder_rung", "Rung reached: 0 is calm, 5 a full pool.", _RUNGS.index(load.rung)),
        _gauge("search_slots", "Searches that may have begun at once.", load.slots),
        _gauge("search_slots_held", "Searches that hold a slot.", load.held),
        _gauge("searches_waiting", "Searches that wait for a slot or for their turn.", load.waiting),
        _gauge("recovery_slots", "Recovery queries that may be at work at once.", load.recovery_slots),
        _gauge("recovery_slots_held", "Recovery queries at work.", load.recovery_held),
        _counter("queries_admitted_total", "Queries that were begun.", load.admitted),
        Metric(
            "corecube_queries_refused_total", "counter", "Queries turned away.", label="reason", by_label=turned_away
        ),
        _counter("requests_refused_total", "Requests of programs refused before anything was done.", door.refused),
        _counter("recovery_skipped_total", "Searches broken off without a recovery.", load.recovery_skipped),
        _gauge("search_longest_wait_seconds", "Longest wait for a slot and a turn.", load.max_wait_seconds),
    )


def ingest_metrics(load: IngestLoad) -> tuple[Metric, ...]:
    """Return the figures of ingests and memory."""
    return (
        _gauge("ingest_slots", "Embedding calls that all ingests of this process may have at work.", load.slots),
        _gauge("ingest_slots_held", "Those at work.", load.held),
        _gauge("ingest_calls_configured", "Embedding calls that one sync may have at work.", load.configured),
        _gauge("ingest_calls_allowed", "Those that memory allows on this machine now.", load.allowed),
        _gauge("memory_used_bytes", "Resident memory of this process.", load.memory.used),
        _gauge("memory_in_use_bytes", "Memory in use under the limit, by all processes.", load.memory.in_use),
        _gauge("memory_limit_bytes", "Memory that there is; 0 where that is not known.", load.memory.limit),
    )


def rerank_metrics(guards: RerankGuards, config: DensityConfig) -> tuple[Metric, ...]:
    """Return the figures of searches for evidence: what scored pools, what was skipped, how often tails were cut."""
    figures, rates = guards.figures, guards.figures.cut_rates(config)
    breakers = {name: _BREAKERS.index(state) for name, state in guards.states.items()}
    return (
        _labelled("rerank_breaker", "gauge", "Breaker: 0 closed, 1 half open, 2 open.", "reranker", breakers),
        _labelled("rerank_chunk_ms", "gauge", "Time per chunk that is expected, in ms.", "reranker", guards.chunk_ms),
        _labelled("rerank_pools_total", "counter", "Pools by what scored them.", "provider", figures.providers),
        _labelled("rerank_skips_total", "counter", "Pools without a cross-encoder.", "reason", figures.skips),
        _labelled("tighten_searches_total", "counter", "Searches for a section.", "section", _each(rates, "searches")),
        _labelled("tighten_cuts_total", "counter", "Those whose tail was cut off.", "section", _each(rates, "cut")),
        _labelled(
            "tighten_rate_in_band",
            "gauge",
            f"1 where the share that is cut lies within {config.rate_from:g} to {config.rate_to:g}.",
            "section",
            _each(rates, "is_in_band"),
        ),
    )


def _each(rates: Mapping[str, CutRate], name: str) -> dict[str, float]:
    return {section: float(getattr(rate, name)) for section, rate in rates.items()}


def _labelled(name: str, kind: str, meaning: str, label: str, by_label: Mapping[_Label, float]) -> Metric:
    found = {str(value): figure for value, figure in by_label.items()}
    return Metric(f"corecube_{name}", kind, meaning, label=label, by_label=found)


def _gauge(name: str, meaning: str, value: float) -> Metric:
    return Metric(f"corecube_{name}", "gauge", meaning, value)


def _counter(name: str, meaning: str, value: float) -> Metric:
    return Metric(f"corecube_{name}", "counter", meaning, value)
