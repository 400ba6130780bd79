"""Searching the scratch database through the production path, and summing up."""

import resource
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any, Final

import numpy as np
from django.conf import settings

from corecube import garbage
from corecube.access import Principal, ScopeRequest
from corecube.scope import AccessScope
from retrieval import runtime
from retrieval.errors import ModelMissingError
from retrieval.evaluate.bench.corpus import Progress, bench_principal, build, database_bytes, index_bytes, slug
from retrieval.evaluate.bench.plan import Plan, connections_in
from retrieval.evaluate.bench.scratch import scratch_database
from retrieval.evaluate.bench.synthesis import DIM, SYNTHESIS_VERSION
from retrieval.evaluate.bench.workload import KnownQueries, sample_queries
from retrieval.evaluate.latency import Percentiles, latency_ms, percentiles
from retrieval.index.store import dense_exact
from retrieval.models import SearchRecord
from retrieval.presets import preset_named
from retrieval.services import SearchOutcome, SearchRequest, search
from retrieval.types import ChunkId, Span, Vector

_WARM_UP: Final = 20
_RECALL_QUERIES: Final = 50
_EXACT_SECONDS: Final = 60.0
_ENCODED_QUERIES: Final = 20
_DENSE: Final = "dense"


@dataclass(frozen=True, slots=True)
class ScopeFigures:
    """What searches in one scope took and found."""

    scope_percent: int
    queries: int
    latency_ms: Mapping[str, Percentiles]
    #: Share of the exact nearest chunks that the dense leg found, as the preset runs it; None without such a leg.
    recall_against_exact: float | None
    #: How many of the searches left each note in their trace.
    notes: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchReport:
    """One run's figures; those of the first scope stand at the top as well."""

    preset: str
    chunks: int
    seed: int
    dim: int
    scope_percent: int
    queries: int
    latency_ms: Mapping[str, Percentiles]
    recall_against_exact: float | None
    index_bytes: int
    index_bytes_by_name: Mapping[str, int]
    database_bytes: int
    build_seconds: float
    build_seconds_by_step: Mapping[str, float]
    #: Whether the database was kept from an earlier run, which the build's times are then from.
    reused: bool
    #: Of this process, making up the documents included; the server's memory is not in it.
    peak_rss_bytes: int
    #: What the installation's own model takes for one query, which `latency_ms` does not hold; None without a model.
    encoder_ms: Percentiles | None
    scopes: tuple[ScopeFigures, ...]


@dataclass(frozen=True, slots=True)
class _Observation:
    """What is kept of one search."""

    milliseconds: float
    trace: tuple[Span, ...]
    scope: AccessScope
    vector: Vector | None
    dense: tuple[ChunkId, ...] | None


def bench(plan: Plan, *, keep: bool, progress: Progress) -> BenchReport:
    """Build the plan's chunks in a scratch database, search them, and return the figures."""
    with scratch_database(recipe(plan), keep=keep) as scratch:
        if scratch.kept is None:
            seconds = build(plan, progress)
            scratch.remember(seconds)
        else:
            seconds = scratch.kept
        scopes = tuple(_scope_figures(plan, percent, progress) for percent in plan.scopes)
        return _report(plan, scopes, seconds, reused=scratch.kept is not None)


def recipe(plan: Plan) -> dict[str, Any]:
    """Return all that decides what a scratch database holds."""
    return {
        "chunks": plan.chunks,
        "seed": plan.seed,
        "synthesis": SYNTHESIS_VERSION,
        "text_search_config": settings.CORECUBE_TEXT_SEARCH_CONFIG,
    }


def _report(plan: Plan, scopes: tuple[ScopeFigures, ...], seconds: Mapping[str, float], *, reused: bool) -> BenchReport:
    sizes = index_bytes()
    peak = peak_rss_bytes()  # before the model is loaded
    return BenchReport(
        preset=plan.preset,
        chunks=plan.chunks,
        seed=plan.seed,
        dim=DIM,
        scope_percent=scopes[0].scope_percent,
        queries=scopes[0].queries,
        latency_ms=scopes[0].latency_ms,
        recall_against_exact=scopes[0].recall_against_exact,
        index_bytes=sum(sizes.values()),
        index_bytes_by_name=sizes,
        database_bytes=database_bytes(),
        build_seconds=round(sum(seconds.values()), 3),
        build_seconds_by_step={step: round(value, 3) for step, value in seconds.items()},
        reused=reused,
        peak_rss_bytes=peak,
        encoder_ms=_encoder_ms(plan),
        scopes=scopes,
    )


def _scope_figures(plan: Plan, percent: int, progress: Progress) -> ScopeFigures:
    """Search in one scope: a few times to warm up, then timed, and only then compare with the exact answer."""
    principal = bench_principal()
    observed = _observe(plan, percent, principal, progress)[_WARM_UP:]
    SearchRecord.objects.filter(user=principal.user).delete()
    notes = Counter(note.code for it in observed for span in it.trace for note in span.notes)
    return ScopeFigures(
        scope_percent=percent,
        queries=len(observed),
        latency_ms=latency_ms([it.milliseconds for it in observed], [it.trace for it in observed]),
        recall_against_exact=_recall(observed[:_RECALL_QUERIES], depth=preset_named(plan.preset).defaults.dense.depth),
        notes=dict(sorted(notes.items())),
    )


def _observe(plan: Plan, percent: int, principal: Principal, progress: Progress) -> list[_Observation]:
    """Search for every query of a scope, one after the other."""
    queries = sample_queries(plan, percent, _WARM_UP + plan.queries)
    encoder = KnownQueries({query.text: query.vector for query in queries})
    narrowing = ScopeRequest(include=tuple(slug(number) for number in connections_in(percent)))
    observed = []
    for place, query in enumerate(queries):
        progress(f"search {percent} %", place, len(queries))
        if place == _WARM_UP:
            # As the web server does once it is loaded.
            garbage.settle()
        request = SearchRequest(text=query.text, preset=plan.preset, narrowing=narrowing)
        started = perf_counter()
        outcome = search(request, principal=principal, resources=runtime.resources(encoder))
        observed.append(_observation(outcome, (perf_counter() - started) * 1000))
    return observed


def _observation(outcome: SearchOutcome, milliseconds: float) -> _Observation:
    """Return what later figures need; the hits' texts would be most of the process's memory."""
    state = outcome.state
    ranking = state.rankings.get(_DENSE)
    dense = None if ranking is None else tuple(hit.chunk_id for hit in ranking)
    return _Observation(milliseconds, state.trace, state.scope, state.vector, dense)


def _recall(observed: Sequence[_Observation], *, depth: int) -> float | None:
    """Return the mean share of the exact nearest chunks that the dense leg found."""
    index = runtime.active_index(KnownQueries({}))
    shares = []
    for it in observed:
        if it.dense is None or it.vector is None:
            return None
        exact = dense_exact(it.vector, scope=it.scope, index=index, depth=depth, timeout_seconds=_EXACT_SECONDS)
        nearest = {hit.chunk_id for hit in exact}
        shares.append(len(nearest.intersection(it.dense)) / len(nearest))
    return round(float(np.mean(shares)), 4)


def peak_rss_bytes() -> int:
    """Return the most memory that this process has had resident."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def _encoder_ms(plan: Plan) -> Percentiles | None:
    """Return what the installation's model takes for one query, or None when it is not on this machine."""
    try:
        encoder = runtime.encoder()
    except ModelMissingError:
        return None
    texts = [query.text for query in sample_queries(plan, plan.scopes[0], _ENCODED_QUERIES)]
    encoder.encode_query(texts[0])
    return percentiles([_milliseconds(encoder.encode_query, text) for text in texts])


def _milliseconds(call: Callable[[str], Any], text: str) -> float:
    started = perf_counter()
    call(text)
    return (perf_counter() - started) * 1000
