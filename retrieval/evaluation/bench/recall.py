"""How much of the exact answer the vector leg finds, and the walk over the HNSW index by itself, in any scope."""

from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Final

import numpy as np

from corecube.scope import AccessScope
from retrieval.engine.types import ChunkId, Ranking, Vector
from retrieval.evaluation.latency import Percentiles, percentiles
from retrieval.index.store import VectorIndex, dense_exact, dense_hnsw
from retrieval.stages.dense import DenseConfig

_SECONDS: Final = 60.0


@dataclass(frozen=True, slots=True)
class Asked:
    """A search that is looked at again: its vector, its scope, and what its vector leg returned, None without one."""

    vector: Vector
    scope: AccessScope
    found: tuple[ChunkId, ...] | None


@dataclass(frozen=True, slots=True)
class RecallFigures:
    """Shares of the exact nearest chunks, 0 to 1."""

    #: Of the vector leg as the preset runs it, which compares a small scope exactly; None without such a leg.
    of_leg: float | None
    #: Of the walk over the HNSW index with the preset's numbers, whatever the size of the scope, and what it took.
    of_walk: float
    walk_ms: Percentiles


def recall_figures(asked: Sequence[Asked], index: VectorIndex, config: DenseConfig) -> RecallFigures:
    """Search exactly for each vector, and walk the index towards it."""
    legs: list[float] = []
    walks: list[float] = []
    milliseconds: list[float] = []
    for it in asked:
        exact = dense_exact(it.vector, scope=it.scope, index=index, depth=config.depth, timeout_seconds=_SECONDS)
        started = perf_counter()
        walked = _walked(it, index, config)
        milliseconds.append((perf_counter() - started) * 1000)
        walks.append(_share(exact, {hit.chunk_id for hit in walked}))
        legs += [] if it.found is None else [_share(exact, set(it.found))]
    return RecallFigures(_mean(legs) if legs else None, _mean(walks), percentiles(milliseconds))


def _walked(asked: Asked, index: VectorIndex, config: DenseConfig) -> Ranking:
    return dense_hnsw(
        asked.vector,
        scope=asked.scope,
        index=index,
        depth=config.depth,
        ef_search=config.ef_search,
        oversample=config.oversample,
        timeout_seconds=_SECONDS,
    )


def _share(exact: Ranking, found: set[ChunkId]) -> float:
    return len({hit.chunk_id for hit in exact} & found) / len(exact) if exact else 1.0


def _mean(shares: Sequence[float]) -> float:
    return round(float(np.mean(shares)), 4)
