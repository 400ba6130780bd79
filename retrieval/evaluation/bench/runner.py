"""Search the scratch database through the production path and report the figures."""

import os
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from time import perf_counter
from typing import Any, Final

import numpy as np
from django.conf import settings

from corecube import process
from corecube.access import Principal
from corecube.scope import AccessScope
from retrieval.engine.pipeline import Legs
from retrieval.engine.state import Span
from retrieval.engine.types import ChunkId, Ranking, Vector
from retrieval.errors import SearchTimeoutError
from retrieval.evaluation.bench.budget import BudgetRow, against_budget
from retrieval.evaluation.bench.corpus import (
    Progress,
    bench_principal,
    build,
    build_scan_index,
    database_bytes,
    index_bytes,
    update_read_models,
)
from retrieval.evaluation.bench.first import READ_MODEL_DIRS, FirstSearch, first_search
from retrieval.evaluation.bench.plan import Plan
from retrieval.evaluation.bench.processes import CpuMeter, own_bytes, peak_rss_bytes, server_bytes
from retrieval.evaluation.bench.readers import ReadersFigures, search_over_http
from retrieval.evaluation.bench.scratch import Scratch, restart_server, scratch_database
from retrieval.evaluation.bench.synthesis import DIM, SYNTHESIS_VERSION
from retrieval.evaluation.bench.workload import (
    KnownQueries,
    SyntheticQuery,
    installed_model,
    request_for,
    sample_queries,
)
from retrieval.evaluation.latency import Percentiles, latency_ms, percentiles, quickest_ms, times_of
from retrieval.index import active
from retrieval.index.store import VectorIndex, dense_exact, dense_hnsw
from retrieval.models import SearchRecord
from retrieval.presets.catalog import preset_named
from retrieval.search import runtime, warm_up
from retrieval.search.record_writer import record_writer
from retrieval.search.request import SearchRequest
from retrieval.search.service import search
from retrieval.stages.dense import DenseConfig

_EXACT_SECONDS: Final = 60.0
#: Searches before the timed ones, unless fewer are timed: they fill the buffers of the database server.
_WARM_UP: Final = 100
_RECALL_QUERIES: Final = 50


@dataclass(frozen=True, slots=True)
class ObservedSearch:
    """A search with its vector, its scope and the hits of its vector leg, None without one."""

    milliseconds: float
    trace: tuple[Span, ...] = ()  #: The following fields are empty for a search that timed out.
    scope: AccessScope | None = None
    vector: Vector | None = None
    dense: tuple[ChunkId, ...] | None = None


def _recall_figures(searches: Sequence[ObservedSearch], index: VectorIndex, config: DenseConfig) -> dict[str, Any]:
    """Return the fields of `ScopeFigures` that compare each search with an exact search and with an index scan."""
    legs: list[float] = []
    scans: list[float] = []
    milliseconds: list[float] = []
    for it in searches:
        if it.vector is None or it.scope is None:
            continue
        exact = dense_exact(it.vector, scope=it.scope, index=index, depth=config.depth, timeout_seconds=_EXACT_SECONDS)
        started = perf_counter()
        scanned = dense_hnsw(
            it.vector,
            scope=it.scope,
            index=index,
            depth=config.depth,
            ef_search=config.ef_search,
            oversample=config.oversample,
            timeout_seconds=_EXACT_SECONDS,
        )
        milliseconds.append((perf_counter() - started) * 1000)
        scans.append(_share(exact, {hit.chunk_id for hit in scanned}))
        legs += [] if it.dense is None else [_share(exact, set(it.dense))]
    leg = _mean(legs) if legs else None
    return {"recall_against_exact": leg, "walk_recall": _mean(scans), "walk_ms": percentiles(milliseconds)}


def _share(exact: Ranking, found: set[ChunkId]) -> float:
    return len({hit.chunk_id for hit in exact} & found) / len(exact) if exact else 1.0


def _mean(shares: Sequence[float]) -> float:
    return round(float(np.mean(shares)), 4)


@dataclass(frozen=True, slots=True)
class ScopeFigures:
    """Latency and recall of the searches in one scope."""

    scope_percent: int
    queries: int  #: Each is searched in every pass.
    passes: int
    latency_ms: Mapping[str, Percentiles]
    cpu_ms: Mapping[str, float]  #: As `CpuMeter.per_search`.
    #: Each query's fastest search, with less influence of other load on the machine. None for one pass.
    quickest_ms: Percentiles | None
    budget: tuple[BudgetRow, ...]  #: Latency of each step against its budget; empty for presets without budgets.
    #: Share of the exact nearest chunks that the preset's dense leg found; None without such a leg.
    recall_against_exact: float | None
    walk_recall: float  #: The same for an HNSW index scan, which small scopes do not use, and its duration.
    walk_ms: Percentiles
    #: How long each search waited for its slowest leg, ascending: `manage.py plan` draws from these times.
    legs_ms: tuple[float, ...]
    #: Number of searches by note in the trace; "out_of_time" counts searches without a trace.
    notes: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchReport:
    """The figures of a run; those of the first scope are also at the top level."""

    preset: str
    chunks: int
    seed: int
    dim: int
    scope_percent: int
    queries: int
    latency_ms: Mapping[str, Percentiles]
    cpu_ms: Mapping[str, float]
    recall_against_exact: float | None
    index_bytes: int
    index_bytes_by_name: Mapping[str, int]
    database_bytes: int
    build_seconds: float
    build_seconds_by_step: Mapping[str, float]
    reused: bool  #: Whether the database and its build times are from an earlier run.
    peak_rss_bytes: int  #: Of this process, including document generation; without the server's memory.
    #: Of this process after the last search, with its share of mapped files; and of all processes of the server, None
    #: for one on another machine. Shared memory is counted once.
    own_bytes: int
    server_bytes: int | None
    scan: Mapping[str, Any]
    embedded_by: str
    first_searches: tuple[FirstSearch, ...]
    scopes: tuple[ScopeFigures, ...]
    over_http: tuple[ReadersFigures, ...]  #: In the first scope, one for each number of readers.


def bench(plan: Plan, *, keep: bool, progress: Progress, first: bool = True) -> BenchReport:
    """Build a plan's chunks in a scratch database and search them; `first` measures a new process's first search."""
    with _separate_read_models(keep=keep):
        with scratch_database(recipe(plan), keep=True) as scratch:
            seconds, reused = _filled(plan, scratch, progress), scratch.reused is not None
        is_restarted = first and restart_server()
        with scratch_database(recipe(plan), keep=keep) as scratch:
            if scratch.reused is None:
                seconds = _filled(plan, scratch, progress)
            first_searches: tuple[FirstSearch, ...] = ()
            if first:
                # The first one, with a warm-up that reads the disk, follows the restart of the server.
                warmed = first_search(plan, plan.scopes[0], is_warmed=True, is_restarted=is_restarted)
                first_searches = (warmed, first_search(plan, plan.scopes[0], is_warmed=False))
            scopes = tuple(_scope_figures(plan, percent, progress) for percent in plan.scopes)
            over_http = search_over_http(plan, plan.scopes[0], progress) if plan.readers else ()
            return _report(plan, scopes, seconds, first_searches, over_http, reused=reused)


def _filled(plan: Plan, scratch: Scratch, progress: Progress) -> Mapping[str, float]:
    if scratch.reused is None:
        seconds = build(plan, progress)
        scratch.remember(seconds)
    else:
        seconds = {**scratch.reused, **build_scan_index(plan, progress)}
    return {**seconds, **update_read_models(progress)}


@contextmanager
def _separate_read_models(*, keep: bool) -> Iterator[None]:
    before = {name: getattr(settings, name) for name in READ_MODEL_DIRS}
    for name, folder in before.items():
        setattr(settings, name, folder.with_name(f"{folder.name}-bench"))
    try:
        yield
    finally:
        for name, folder in before.items():
            if not keep:
                shutil.rmtree(getattr(settings, name), ignore_errors=True)
            setattr(settings, name, folder)


def recipe(plan: Plan) -> dict[str, Any]:
    """Return everything that determines the content of a scratch database."""
    return {
        "chunks": plan.chunks,
        "seed": plan.seed,
        "synthesis": SYNTHESIS_VERSION,
        "text_search_config": settings.CORECUBE_TEXT_SEARCH_CONFIG,
        "nested": plan.nested,
    }


def _report(
    plan: Plan,
    scopes: tuple[ScopeFigures, ...],
    seconds: Mapping[str, float],
    first: tuple[FirstSearch, ...],
    over_http: tuple[ReadersFigures, ...],
    *,
    reused: bool,
) -> BenchReport:
    sizes = index_bytes()
    model = installed_model()
    return BenchReport(
        preset=plan.preset,
        chunks=plan.chunks,
        seed=plan.seed,
        dim=DIM,
        scope_percent=scopes[0].scope_percent,
        queries=scopes[0].queries,
        latency_ms=scopes[0].latency_ms,
        cpu_ms=scopes[0].cpu_ms,
        recall_against_exact=scopes[0].recall_against_exact,
        index_bytes=sum(sizes.values()),
        index_bytes_by_name=sizes,
        database_bytes=database_bytes(),
        build_seconds=round(sum(seconds.values()), 3),
        build_seconds_by_step={step: round(value, 3) for step, value in seconds.items()},
        reused=reused,
        peak_rss_bytes=peak_rss_bytes(),
        own_bytes=own_bytes(),
        server_bytes=server_bytes(),
        scan=asdict(plan.scan),
        embedded_by=model.name if model else "",
        first_searches=first,
        scopes=scopes,
        over_http=over_http,
    )


def _scope_figures(plan: Plan, percent: int, progress: Progress) -> ScopeFigures:
    """Search in one scope: first a warm-up, then the timed searches, then the comparison with exact search."""
    principal = bench_principal()
    observed, cpu_ms = _observe(plan, percent, principal, progress)
    SearchRecord.objects.filter(user=principal.user).delete()
    notes = Counter(note.code for it in observed for span in it.trace for note in span.notes)
    if late := sum(not it.trace for it in observed):
        notes["out_of_time"] = late
    index, config = active.active_index(KnownQueries({})), preset_named(plan.preset).defaults.dense
    totals = [it.milliseconds for it in observed]
    has_budget = preset_named(plan.preset).base == "helix"
    budget = against_budget(totals, [it.trace for it in observed if it.trace]) if has_budget else ()
    return ScopeFigures(
        scope_percent=percent,
        queries=plan.queries,
        passes=plan.passes,
        latency_ms={**latency_ms(totals, [it.trace for it in observed]), "between stages": _between(observed)},
        cpu_ms=cpu_ms,
        quickest_ms=quickest_ms(totals, queries=plan.queries) if plan.passes > 1 else None,
        budget=budget,
        **_recall_figures(observed[:_RECALL_QUERIES], index, config),
        legs_ms=tuple(sorted(_legs_ms(observed))),
        notes=dict(sorted(notes.items())),
    )


def _legs_ms(observed: Sequence[ObservedSearch]) -> Iterator[float]:
    for it in observed:
        yield from (round(span.seconds * 1000, 2) for span in it.trace if span.stage == Legs.name)


def _between(observed: Sequence[ObservedSearch]) -> Percentiles:
    """Return what searches take besides their stages: access, configuration and the record."""
    stages = ((it, sum(span.seconds for span in it.trace if not span.parent) * 1000) for it in observed if it.trace)
    return percentiles([it.milliseconds - taken for it, taken in stages])


def _observe(
    plan: Plan, percent: int, principal: Principal, progress: Progress
) -> tuple[list[ObservedSearch], Mapping[str, float]]:
    """Return the timed searches and their CPU time per search, as `CpuMeter.per_search`."""
    sampled = sample_queries(plan, percent, _warm_up(plan) + plan.queries)
    first, queries = sampled[: _warm_up(plan)], sampled[_warm_up(plan) :] * plan.passes
    encoder = KnownQueries({query.text: query.vector for query in sampled}, installed_model())

    def observe(query: SyntheticQuery) -> ObservedSearch:
        return _observed(request_for(query, plan, percent), principal, encoder)

    # As the web server does at its start; a reused database is only on the disk.
    warm_up.warm_up(tools=runtime.resources(encoder))
    for query in first:
        observe(query)
    # As the web server does after loading.
    process.exclude_loaded_from_collection()
    record_writer.begin()
    meter, observed = CpuMeter(os.getpid()), []
    for place, query in enumerate(queries):
        progress(f"search {percent} %", place, len(queries))
        observed.append(observe(query))
    record_writer.end()
    return observed, meter.per_search(len(observed))


def _observed(request: SearchRequest, principal: Principal, encoder: KnownQueries) -> ObservedSearch:
    started = perf_counter()
    try:
        outcome = search(request, principal=principal, resources=runtime.resources(encoder))
    except SearchTimeoutError:
        return ObservedSearch((perf_counter() - started) * 1000)
    milliseconds, state = (perf_counter() - started) * 1000, outcome.state
    ranking = state.rankings.get("dense")
    dense = None if ranking is None else tuple(hit.chunk_id for hit in ranking)
    return ObservedSearch(milliseconds, times_of(state.trace), state.scope, state.vector, dense)


def _warm_up(plan: Plan) -> int:
    return min(_WARM_UP, plan.queries)
