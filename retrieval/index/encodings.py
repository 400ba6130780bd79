"""What models make of chunks beside their vectors: sparse vectors, and the vectors of tokens and of sentences."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final
from uuid import UUID

from django.db import connection, transaction

from corecube.scope import AccessScope
from retrieval.encoders.compressed_vectors import CompressedVectors
from retrieval.encoders.embedders import key_of
from retrieval.encoders.protocol import VectorModel
from retrieval.encoders.sparse_encoder import SparseVector
from retrieval.engine.state import RequestFilter
from retrieval.engine.types import ChunkId, Ranking, ScoreType
from retrieval.index.filters import filtered
from retrieval.index.locks import Lock, lock_documents
from retrieval.index.reading import changed, chunk_keys, read, rows
from retrieval.index.statements import statement
from retrieval.index.store import MAX_EF_SEARCH, hnsw_settings, ranking

_UNENCODED: Final = statement("upkeep/unencoded")
_INSERT_SPARSE: Final = statement("upkeep/insert_sparse")
_INSERT_COMPRESSED: Final = statement("upkeep/insert_compressed")
_COMPRESSED: Final = statement("compressed_vectors")
_CREATE_HNSW: Final = statement("upkeep/create_hnsw_sparse")
_REMOVE: Final = "DELETE FROM {table} WHERE document_id = ANY(%s)"
_DROP: Final = "DELETE FROM {table} WHERE connection_id = %s AND model_key <> %s"
_COUNT: Final = "SELECT count(*) FROM {table} WHERE connection_id = %s AND model_key = %s"
_OTHER_INDEXES: Final = (
    "SELECT oid::regclass::text FROM pg_class WHERE relkind = 'i' AND relname ^@ %s AND relname <> %s"
    " AND relnamespace = current_schema()::regnamespace"
)
_SPLITTING: Final = "6"  #: Changes with what `embedded_texts` returns, so that the vectors are made anew.
_SPARSE_INDEX: Final = "retrieval_sparse_hnsw_"
_EXACT: Final = statement("sparse_exact")
_HNSW: Final = statement("sparse_hnsw")


class Encodings(StrEnum):
    """Kinds of what is made of chunks."""

    SPARSE = "sparse"
    TOKENS = "tokens"
    SENTENCES = "sentences"

    @property
    def table(self) -> str:
        """The table of the encodings."""
        return f"retrieval_{self.value.removesuffix('s')}embedding"

    def key(self, model: VectorModel) -> int:
        """Return the number that identifies what a model makes of this kind."""
        return key_of(model, _SPLITTING) if self is Encodings.SENTENCES else key_of(model)

    @property
    def insertion(self) -> str:
        """The statement that adds a chunk's encoding."""
        return _INSERT_SPARSE if self is Encodings.SPARSE else _INSERT_COMPRESSED.replace("{table}", self.table)


@dataclass(frozen=True, slots=True)
class Unencoded:
    """A chunk without an encoding, and what one is made of."""

    document_id: UUID
    ordinal: int
    content_hash: str
    title: str
    heading_path: Sequence[str]
    text: str


def unencoded(kind: Encodings, *, connection_id: int, model_key: int, at_once: int) -> Iterator[list[Unencoded]]:
    """Yield a connection's chunks without an encoding by the model in batches; each chunk is in one batch."""
    sql = _UNENCODED.replace("{table}", kind.table)
    document, ordinal = UUID(int=0), -1
    while True:
        place = {"connection": connection_id, "model": model_key, "document": document, "ordinal": ordinal}
        found = [Unencoded(*row) for row in rows(sql, place | {"limit": at_once})]
        if not found:
            return
        yield found
        document, ordinal = found[-1].document_id, found[-1].ordinal


def store_encodings(
    kind: Encodings, chunks: Sequence[Unencoded], made: Sequence[SparseVector | CompressedVectors], *, model_key: int
) -> int:
    """Store encodings in one transaction and return how many; chunks that changed or went meanwhile are left out."""
    encoded: list[dict[str, Any]] = [
        {"document": it.document_id, "ordinal": it.ordinal, "content_hash": it.content_hash, "model": model_key}
        | _columns(encoding)
        for it, encoding in zip(chunks, made, strict=True)
    ]
    with transaction.atomic(), connection.cursor() as cursor:
        lock_documents((it.document_id for it in chunks), Lock.SHARE)
        cursor.executemany(kind.insertion, encoded)
        return int(cursor.rowcount)


def compressed_vectors(
    kind: Encodings, hits: Ranking, *, model_key: int, dim: int, scope: AccessScope, timeout_seconds: float
) -> dict[ChunkId, CompressedVectors]:
    """Return the token or sentence vectors by a model of the hits in scope that have any; raise SearchTimeoutError."""
    parameters = chunk_keys(hits) | {"model": model_key, "scope": scope.connection_ids}
    rows = read(_COMPRESSED.replace("{table}", kind.table), parameters, timeout_seconds=timeout_seconds)
    return {
        ChunkId(row["document_id"], row["ordinal"]): CompressedVectors.read(bytes(row["vectors"]), dim) for row in rows
    }


def require_sparse_index(*, model_key: int, dim: int) -> None:
    """Create the HNSW index over a model's sparse vectors unless it is there, and drop those over other models'."""
    with connection.cursor() as cursor:
        # Checked first, as even a CREATE that has nothing to do waits for everybody who writes to the table.
        cursor.execute("SELECT to_regclass(%s) IS NULL", [f"{_SPARSE_INDEX}{int(model_key)}"])
        if cursor.fetchone()[0]:
            cursor.execute(_CREATE_HNSW % {"model": int(model_key), "dim": int(dim)})
        cursor.execute(_OTHER_INDEXES, [_SPARSE_INDEX, f"{_SPARSE_INDEX}{int(model_key)}"])
        for (name,) in cursor.fetchall():
            cursor.execute(f"DROP INDEX IF EXISTS {name}")


def remove_encodings(cursor: Any, ids: Sequence[UUID]) -> None:  # noqa: ANN401 -- Django's cursor wrapper has no public type
    """Delete everything that was made of documents' chunks."""
    for kind in Encodings:
        cursor.execute(_REMOVE.replace("{table}", kind.table), [list(ids)])


def drop_encodings(kind: Encodings, connection_id: int, *, but: int = -1) -> int:
    """Delete a connection's encodings of a kind, except those by the model of the key `but`; return how many."""
    return changed(_DROP.replace("{table}", kind.table), [connection_id, but])


def count_encodings(kind: Encodings, connection_id: int, *, model_key: int) -> int:
    """Return how many chunks of a connection have an encoding by the model."""
    ((count,),) = rows(_COUNT.replace("{table}", kind.table), [connection_id, model_key])
    return int(count)


def _columns(encoding: SparseVector | CompressedVectors) -> dict[str, Any]:
    if isinstance(encoding, SparseVector):
        return {"vector": encoding.to_text()}
    return {"vectors": encoding.to_bytes()}


@dataclass(frozen=True, slots=True)
class SparseLook:
    """What a sparse search compares, and within what."""

    vector: SparseVector
    scope: AccessScope
    model_key: int  #: `retrieval.encoders.embedders.key_of` the model that made the vector.
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
    sql, parameters = filtered(_HNSW, {**look.parameters, "candidates": candidates}, look.request_filter)
    settings = hnsw_settings(ef_search, candidates)
    rows = read(sql, parameters, timeout_seconds=look.timeout_seconds, settings=settings)
    found = (hit for hit in ranking(rows, ScoreType.SPARSE) if hit.score > 0)
    return tuple(sorted(found, key=lambda hit: (-hit.score, hit.chunk_id)))[: look.depth]
