"""Reads what a search did not return: one document's exact signals, and the rank of a chunk in scope.

Costs as much as an exact scan of the scope, so it is done for one requested document only.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from pgvector import HalfVector

from corecube.scope import AccessScope
from retrieval.engine.types import ChunkId, Term, Vector
from retrieval.index import statements
from retrieval.index.reading import read
from retrieval.index.store import TextSearch, VectorIndex, fulltext_parameters
from retrieval.index.types import ChunkProbe, DocumentProbe, Place


@dataclass(frozen=True, slots=True)
class Probed:
    """What is compared: the query as both legs read it, in the scope of its search."""

    scope: AccessScope
    index: VectorIndex
    vector: Vector | None  #: None where the query could not be embedded.
    terms: Sequence[Term]
    search: TextSearch


def document(
    probed: Probed, document_id: UUID, *, match: str, ordinals: Sequence[int], timeout_seconds: float
) -> DocumentProbe:
    """Return a document's best chunks by either signal, and the requested ones, with both signals exact.

    The cosine is compared, not looked up in the HNSW index; the full-text score is by terms, as a cover density is 0
    for chunks that lack one. `match` is the tsquery of the full-text leg; empty matches nothing. A document out of
    scope has no chunks.
    """
    parameters = _parameters(probed, match, ChunkId(document_id, 0)) | {"ordinals": list(ordinals)}
    sql = statements.scored(statements.PROBE, len(probed.terms))
    rows = read(sql, parameters, timeout_seconds=timeout_seconds)
    chunks = {
        ChunkId(row["document_id"], row["ordinal"]): ChunkProbe(
            row["cosine"], float(row["fulltext"]), bool(row["is_match"])
        )
        for row in rows
    }
    return DocumentProbe(
        chunks=chunks,
        count=rows[0]["chunks"] if rows else 0,
        vectors=rows[0]["vectors"] if rows else 0,
        nearest=_first(row for row in rows if row["by_distance"] == 1 and row["cosine"] is not None),
        wordiest=_first(row for row in rows if row["by_fulltext"] == 1 and (row["is_match"] or row["fulltext"] > 0)),
    )


def place_dense(probed: Probed, chunk_id: ChunkId, *, timeout_seconds: float) -> Place | None:
    """Return a chunk's exact place by cosine among the chunks in scope, ties by chunk id; None without a vector."""
    if probed.vector is None:
        return None
    parameters = _parameters(probed, "", chunk_id)
    return _place(read(statements.PLACE_DENSE, parameters, timeout_seconds=timeout_seconds))


def place_fulltext(probed: Probed, chunk_id: ChunkId, *, match: str, timeout_seconds: float) -> Place | None:
    """Return a chunk's exact place by full-text score among those in scope that match; None when it does not."""
    parameters = _parameters(probed, match, chunk_id)
    sql = statements.scored(statements.PLACE_FULLTEXT, len(probed.terms), by_cover=probed.search.by_cover)
    return _place(read(sql, parameters, timeout_seconds=timeout_seconds))


def _parameters(probed: Probed, match: str, chunk_id: ChunkId) -> dict[str, Any]:
    return fulltext_parameters(match, probed.terms, probed.scope, probed.search) | {
        "document": chunk_id.document_id,
        "ordinal": chunk_id.ordinal,
        "index": probed.index.id,
        "vector": None if probed.vector is None else HalfVector(probed.vector).to_text(),
    }


def _first(rows: Iterable[Mapping[str, Any]]) -> ChunkId | None:
    return next((ChunkId(row["document_id"], row["ordinal"]) for row in rows), None)


def _place(rows: Sequence[Mapping[str, Any]]) -> Place | None:
    return Place(rows[0]["rank"], rows[0]["among"]) if rows else None
