"""Writing what optional models make of chunks: sparse vectors, and the vectors of tokens."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final
from uuid import UUID

from django.db import connection, transaction

from retrieval.encoders.late_interaction import TokenVectors
from retrieval.encoders.sparse_encoder import SparseVector
from retrieval.index.reading import changed, rows
from retrieval.index.statements import statement

_UNENCODED: Final = statement("upkeep/unencoded")
_INSERT: Final = {"sparse": statement("upkeep/insert_sparse"), "tokens": statement("upkeep/insert_tokens")}
_CREATE_HNSW: Final = statement("upkeep/create_hnsw_sparse")
_REMOVE: Final = "DELETE FROM {table} WHERE document_id = ANY(%s)"
_DROP: Final = "DELETE FROM {table} WHERE connection_id = %s"
_DROP_OTHERS: Final = "DELETE FROM {table} WHERE connection_id = %s AND model_key <> %s"
_COUNT: Final = "SELECT count(*) FROM {table} WHERE connection_id = %s AND model_key = %s"
_OTHER_INDEXES: Final = (
    "SELECT oid::regclass::text FROM pg_class WHERE relkind = 'i' AND relname ^@ %s AND relname <> %s"
    " AND relnamespace = current_schema()::regnamespace"
)
_SPARSE_INDEX: Final = "retrieval_sparse_hnsw_"


class Encodings(StrEnum):
    """Kinds of what is made of chunks."""

    SPARSE = "sparse"
    TOKENS = "tokens"

    @property
    def table(self) -> str:
        """The table of the encodings."""
        return {"sparse": "retrieval_sparseembedding", "tokens": "retrieval_tokenembedding"}[self.value]


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
    kind: Encodings, chunks: Sequence[Unencoded], made: Sequence[SparseVector | TokenVectors], *, model_key: int
) -> int:
    """Store encodings in one transaction and return how many; chunks that changed or went meanwhile are left out."""
    encoded: list[dict[str, Any]] = [
        {"document": it.document_id, "ordinal": it.ordinal, "content_hash": it.content_hash, "model": model_key}
        | _columns(encoding)
        for it, encoding in zip(chunks, made, strict=True)
    ]
    ids = sorted({it.document_id for it in chunks})
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT FROM retrieval_document WHERE id = ANY(%s) ORDER BY id FOR SHARE", [ids])
        cursor.executemany(_INSERT[kind], encoded)
        return int(cursor.rowcount)


def create_sparse_index(*, model_key: int, dim: int) -> None:
    """Create the HNSW index over a model's sparse vectors unless it is there."""
    with connection.cursor() as cursor:
        # Asked first, as even a CREATE that has nothing to do waits for everybody who writes to the table.
        cursor.execute("SELECT to_regclass(%s) IS NULL", [f"{_SPARSE_INDEX}{int(model_key)}"])
        if cursor.fetchone()[0]:
            cursor.execute(_CREATE_HNSW % {"model": int(model_key), "dim": int(dim)})


def drop_other_sparse_indexes(*, model_key: int) -> int:
    """Drop the HNSW indexes over other models' sparse vectors and return how many there were."""
    with connection.cursor() as cursor:
        cursor.execute(_OTHER_INDEXES, [_SPARSE_INDEX, f"{_SPARSE_INDEX}{int(model_key)}"])
        found = [name for (name,) in cursor.fetchall()]
        for name in found:
            cursor.execute(f"DROP INDEX IF EXISTS {name}")
        return len(found)


def drop_other_encodings(kind: Encodings, connection_id: int, *, model_key: int) -> int:
    """Delete a connection's encodings by any model but this one and return how many there were."""
    return changed(_DROP_OTHERS.replace("{table}", kind.table), [connection_id, model_key])


def remove_encodings(cursor: Any, ids: Sequence[UUID]) -> None:  # noqa: ANN401 -- Django's cursor wrapper has no public type
    """Delete everything that was made of documents' chunks."""
    for kind in Encodings:
        cursor.execute(_REMOVE.replace("{table}", kind.table), [list(ids)])


def drop_encodings(kind: Encodings, connection_id: int) -> int:
    """Delete a connection's encodings of a kind and return how many there were."""
    return changed(_DROP.replace("{table}", kind.table), [connection_id])


def count_encodings(kind: Encodings, connection_id: int, *, model_key: int) -> int:
    """Return how many chunks of a connection have an encoding by the model."""
    ((count,),) = rows(_COUNT.replace("{table}", kind.table), [connection_id, model_key])
    return int(count)


def _columns(encoding: SparseVector | TokenVectors) -> dict[str, Any]:
    if isinstance(encoding, SparseVector):
        return {"vector": encoding.to_text()}
    steps, scales = encoding.to_bytes()
    return {"steps": steps, "scales": scales}
