"""The sparse leg's reads: chunks by the inner product of learned sparse vectors, always in scope."""

from dataclasses import dataclass
from typing import Any, Final

from corecube.scope import AccessScope
from retrieval.encoders.sparse_encoder import SparseVector
from retrieval.engine.state import RequestFilter
from retrieval.engine.types import Ranking, ScoreType
from retrieval.index.filters import filtered
from retrieval.index.reading import read
from retrieval.index.statements import statement
from retrieval.index.store import MAX_EF_SEARCH, ONLY_THE_HNSW_INDEX, ranking

_EXACT: Final = statement("sparse_exact")
_HNSW: Final = statement("sparse_hnsw")


@dataclass(frozen=True, slots=True)
class SparseLook:
    """What a sparse search compares, and within what."""

    vector: SparseVector
    scope: AccessScope
    #: `retrieval.encoders.embedders.key_of` the model that made the vector.
    model_key: int
    depth: int
    timeout_seconds: float
    request_filter: RequestFilter = RequestFilter()  # noqa: RUF009 -- frozen

    @property
    def parameters(self) -> dict[str, Any]:
        """What every statement takes."""
        return {
            "vector": self.vector.to_text(),
            "dim": self.vector.dim,
            "model": self.model_key,
            "scope": self.scope.connection_ids,
            "depth": self.depth,
        }


def sparse_exact(look: SparseLook) -> Ranking:
    """Return the chunks in scope with the highest inner product above 0, found by comparing all of them."""
    sql, parameters = filtered(_EXACT, look.parameters, look.request_filter)
    return ranking(read(sql, parameters, timeout_seconds=look.timeout_seconds), ScoreType.SPARSE)


def sparse_hnsw(look: SparseLook, *, ef_search: int) -> Ranking:
    """Return about the chunks in scope with the highest inner product above 0, by the HNSW index (iterative scan)."""
    candidates = min(2 * look.depth, MAX_EF_SEARCH)
    settings = {
        "hnsw.ef_search": str(min(max(ef_search, candidates), MAX_EF_SEARCH)),
        "hnsw.iterative_scan": "relaxed_order",
        **ONLY_THE_HNSW_INDEX,
    }
    sql, parameters = filtered(_HNSW, {**look.parameters, "candidates": candidates}, look.request_filter)
    rows = read(sql, parameters, timeout_seconds=look.timeout_seconds, settings=settings)
    found = (hit for hit in ranking(rows, ScoreType.SPARSE) if hit.score > 0)
    return tuple(sorted(found, key=lambda hit: (-hit.score, hit.chunk_id)))[: look.depth]
