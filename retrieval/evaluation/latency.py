"""Latency percentiles of searches."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from retrieval.engine.state import Span

Percentiles = dict[str, float]  #: Percentiles by name, in milliseconds.


def percentiles(milliseconds: Sequence[float]) -> Percentiles:
    """Return p50, p95 and p99, linearly interpolated; all 0 for no values."""
    if not milliseconds:
        return {"p50": 0.0, "p95": 0.0, "p99": 0.0}
    values = np.percentile(milliseconds, [50, 95, 99])
    return {name: round(float(value), 3) for name, value in zip(("p50", "p95", "p99"), values, strict=True)}


def times_of(trace: Iterable[Span]) -> tuple[Span, ...]:
    """Return a trace without its hits and drops, which take most of the memory."""
    return tuple(replace(span, drops=(), left=()) for span in trace)


def quickest_ms(milliseconds: Sequence[float], *, queries: int) -> Percentiles:
    """Return percentiles of each query's fastest search, for searches of all queries in several passes."""
    return percentiles([min(milliseconds[place::queries]) for place in range(queries)])


def latency_ms(totals: Sequence[float], traces: Iterable[Sequence[Span]]) -> Mapping[str, Percentiles]:
    """Return percentiles of the complete search ("total", from `totals` in milliseconds) and of each stage."""
    stages: dict[str, list[float]] = {}
    for trace in traces:
        for span in trace:
            stages.setdefault(span.stage, []).append(span.seconds * 1000)
    return {"total": percentiles(totals), **{stage: percentiles(values) for stage, values in stages.items()}}
