"""Reading the stored vectors of a pool of hits."""

from typing import Final

import numpy as np

from corecube.scope import AccessScope
from retrieval.index.reading import read
from retrieval.index.statements import statement
from retrieval.index.store import VectorIndex
from retrieval.types import ChunkId, Ranking, Vector

_VECTORS: Final = statement("pool_vectors")
#: Bytes before the components, which are half floats, the high byte first.
_HEADER: Final = 4
_HALF: Final = ">f2"


def vectors_of(
    hits: Ranking, *, index: VectorIndex, scope: AccessScope, timeout_seconds: float
) -> dict[ChunkId, Vector]:
    """Return the stored vectors of hits in scope; one without a vector in the index is left out.

    Raises SearchTimeoutError.
    """
    parameters = {
        "documents": [hit.chunk_id.document_id for hit in hits],
        "ordinals": [hit.chunk_id.ordinal for hit in hits],
        "index": index.id,
        "scope": scope.connection_ids,
    }
    rows = read(_VECTORS, parameters, timeout_seconds=timeout_seconds)
    return {ChunkId(row["document_id"], row["ordinal"]): _vector(bytes(row["vector"])) for row in rows}


def _vector(sent: bytes) -> Vector:
    return np.frombuffer(sent, _HALF, offset=_HEADER).astype(np.float32)
