"""Latency histograms of this process's searches, for `/metrics`."""

from collections.abc import Iterable
from typing import Final

from prometheus_client import Histogram, disable_created_metrics

from retrieval.engine.state import Span

# A histogram's time of creation would be a series more for each of its labels.
disable_created_metrics()  # type: ignore[no-untyped-call]

SEARCH_SECONDS: Final = Histogram(
    "corecube_search_duration_seconds", "Latency of searches, without the wait for a slot.", ("preset",), registry=None
)
STAGE_SECONDS: Final = Histogram(
    "corecube_search_stage_duration_seconds",
    "Latency of the stages of searches; those that run in parallel count one by one.",
    ("preset", "stage"),
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0),
    registry=None,
)


def observe_search(preset: str, seconds: float, trace: Iterable[Span]) -> None:
    """Count a finished search and each of its stages."""
    SEARCH_SECONDS.labels(preset).observe(seconds)
    for span in trace:
        STAGE_SECONDS.labels(preset, span.stage).observe(span.seconds)
