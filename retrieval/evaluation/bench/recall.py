"""Recall of the vector leg, and of the HNSW index scan, against exact search, in any scope."""

from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Final

import numpy as np

from corecube.scope import AccessScope
from retrieval.engine.state import Span
from retrieval.engine.types import ChunkId, Ranking, Vector
from retrieval.evaluation.latency import Percentiles, percentiles
from retrieval.index.store import VectorIndex, dense_exact, dense_hnsw
from retrieval.stages.dense import DenseConfig

_SECONDS: Final = 60.0


@dataclass(frozen=True, slots=True)
class ObservedSearch:
    """A search with its vector, its scope and the hits of its vector leg, None without one."""

    milliseconds: float
    trace: tuple[Span, ...] = ()  #: The following fields are empty for a search that timed out.
    scope: AccessScope | None = None
    vector: Vector | None = None
    dense: tuple[ChunkId, ...] | None = None


@dataclass(frozen=True, slots=True)
class RecallFigures:
    """Shares of the exact nearest chunks, 0 to 1."""

    of_leg: float | None  #: Of the preset's vector leg, which searches small scopes exactly; None without such a leg.
    of_walk: float  #: Of the HNSW index scan with the preset's settings for any size of the scope, and its duration.
    walk_ms: Percentiles


def recall_figures(searches: Sequence[ObservedSearch], index: VectorIndex, config: DenseConfig) -> RecallFigures:
    """Compare each search that has a vector with an exact search and an index scan."""
    legs: list[float] = []
    scans: list[float] = []
    milliseconds: list[float] = []
    for it in searches:
        if it.vector is None or it.scope is None:
            continue
        exact = dense_exact(it.vector, scope=it.scope, index=index, depth=config.depth, timeout_seconds=_SECONDS)
        started = perf_counter()
        scanned = dense_hnsw(
            it.vector,
            scope=it.scope,
            index=index,
            depth=config.depth,
            ef_search=config.ef_search,
            oversample=config.oversample,
            timeout_seconds=_SECONDS,
        )
        milliseconds.append((perf_counter() - started) * 1000)
        scans.append(_share(exact, {hit.chunk_id for hit in scanned}))
        legs += [] if it.dense is None else [_share(exact, set(it.dense))]
    return RecallFigures(_mean(legs) if legs else None, _mean(scans), percentiles(milliseconds))


def _share(exact: Ranking, found: set[ChunkId]) -> float:
    return len({hit.chunk_id for hit in exact} & found) / len(exact) if exact else 1.0


def _mean(shares: Sequence[float]) -> float:
    return round(float(np.mean(shares)), 4)
