"""What recovery reads: chunks of a source type, parts of documents, also by their headings, and other indexes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from corecube.scope import AccessScope
from retrieval.engine.state import RequestFilter
from retrieval.engine.types import ChunkId, Hit, Ranking, ScoreType, Term, Vector
from retrieval.index.filters import filtered
from retrieval.index.lexemes import any_of, quoted
from retrieval.index.reading import chunk_keys, read
from retrieval.index.statements import statement
from retrieval.index.store import VectorIndex, vector_parameters
from retrieval.index.types import RoutedRange
from retrieval.models import EmbeddingIndex

_SOURCE_PROBE: Final = statement("source_probe")
_ROUTED: Final = statement("routed_chunks")
_PASSING: Final = statement("passing_chunks")
_HOLDS: Final = statement("index_in_scope")
_HEADINGS: Final = statement("headings")
_WEIGHT: Final = "B"  #: The weight of a heading path's lexemes in a chunk's search vector.
_MAX_CHUNKS: Final = 2_000  #: Maximum number of chunks under matching headings that are read, in any order.


@dataclass(frozen=True, slots=True)
class QueriedIndex:
    """An embedding index with the query's vector by its own model."""

    index: VectorIndex
    vector: Vector
    noise: float | None = None  #: What unrelated texts have in it on average; None for the searched index.


def of_source_types(  # noqa: PLR0913 -- keyword-only, each a plain fact
    source_types: Sequence[str],
    *,
    vector: Vector | None,
    index: VectorIndex,
    terms: Sequence[Term],
    scope: AccessScope,
    request_filter: RequestFilter,
    depth: int,
    timeout_seconds: float,
) -> Ranking:
    """Return the `depth` nearest chunks in scope of documents of these source types, however far they are.

    Without a vector they come by the terms, then the newest first. Empty means that the filter leaves none of them.
    Raises SearchTimeoutError.
    """
    own = {"source_types": list(source_types), "match": any_of(terms)}
    parameters = vector_parameters(vector, scope, index, depth) | own
    sql, parameters = filtered(_SOURCE_PROBE, parameters, request_filter, document="chunk.document_id")
    return _ranking(read(sql, parameters, timeout_seconds=timeout_seconds))


def within(
    ranges: Sequence[RoutedRange],
    *,
    vector: Vector | None,
    index: VectorIndex,
    scope: AccessScope,
    depth: int,
    timeout_seconds: float,
) -> Ranking:
    """Return the `depth` nearest chunks in scope that lie in these ranges; without a vector the first ones.

    Raises SearchTimeoutError.
    """
    parameters = vector_parameters(vector, scope, index, depth) | {
        "documents": [it.document_id for it in ranges],
        "starts": [it.start for it in ranges],
        "ends": [it.end for it in ranges],
    }
    return _ranking(read(_ROUTED, parameters, timeout_seconds=timeout_seconds))


def passing(
    hits: Ranking, *, scope: AccessScope, request_filter: RequestFilter, timeout_seconds: float
) -> frozenset[ChunkId]:
    """Return which hits in scope a filter leaves; raise SearchTimeoutError."""
    parameters = chunk_keys(hits) | {"scope": scope.connection_ids}
    sql, parameters = filtered(_PASSING, parameters, request_filter, document="chunk.document_id")
    rows = read(sql, parameters, timeout_seconds=timeout_seconds)
    return frozenset(ChunkId(row["document_id"], row["ordinal"]) for row in rows)


def other_rows(index: VectorIndex, *, scope: AccessScope, timeout_seconds: float) -> list[EmbeddingIndex]:
    """Return the other embedding indexes with vectors in scope; raise SearchTimeoutError."""
    return [
        row
        for row in EmbeddingIndex.objects.exclude(pk=index.id).order_by("pk")
        if read(_HOLDS, {"index": row.pk, "scope": scope.connection_ids}, timeout_seconds=timeout_seconds)
    ]


def _ranking(rows: Sequence[Mapping[str, Any]]) -> Ranking:
    hits = []
    for row in rows:
        chunk_id, cosine = ChunkId(row["document_id"], row["ordinal"]), row["cosine"]
        if cosine is None:
            hits.append(Hit(chunk_id, float(row["rank"] or 0.0), ScoreType.FULLTEXT))
        else:
            hits.append(Hit(chunk_id, cosine, ScoreType.COSINE, signals={"cosine": cosine}))
    return tuple(hits)


def headings_for(
    terms: Sequence[Term], *, scope: AccessScope, request_filter: RequestFilter, depth: int, timeout_seconds: float
) -> tuple[RoutedRange, ...]:
    """Return the `depth` parts of documents in scope whose headings contain most of the terms, best first.

    A part is a run of chunks under the same headings, its score the sum of the idf of the terms that these hold. Raises
    SearchTimeoutError.
    """
    weighed = [f"{quoted(term.lexeme)}:{_WEIGHT}" for term in terms if term.idf > 0]
    if not weighed:
        return ()
    parameters: dict[str, Any] = {
        "match": " | ".join(weighed),
        "terms": weighed,
        "idfs": [term.idf for term in terms if term.idf > 0],
        "scope": scope.connection_ids,
        "limit": _MAX_CHUNKS,
        "depth": depth,
    }
    sql, parameters = filtered(_HEADINGS, parameters, request_filter)
    return tuple(
        RoutedRange(
            document_id=row["document_id"],
            heading_path=tuple(row["heading_path"]),
            start=row["first"],
            end=row["last"],
            score=float(row["score"]),
        )
        for row in read(sql, parameters, timeout_seconds=timeout_seconds)
    )
