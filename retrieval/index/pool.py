"""Reading the stored vectors of a pool of hits."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from corecube.scope import AccessScope
from retrieval.index.reading import read
from retrieval.index.statements import statement
from retrieval.index.store import VectorIndex
from retrieval.types import Ranking

_VECTORS: Final = statement("pool_vectors")
#: Bytes before the components of each, which are half floats, the high byte first.
_HEADER: Final = 4
_HALF: Final = np.dtype(">f2")


def vectors_of(hits: Ranking, *, index: VectorIndex, scope: AccessScope, timeout_seconds: float) -> NDArray[np.float32]:
    """Return the stored vectors of hits, shape (n, dim); zeros for one that is not in scope, or not in the index.

    Raises SearchTimeoutError.
    """
    parameters = {
        "documents": [hit.chunk_id.document_id for hit in hits],
        "ordinals": [hit.chunk_id.ordinal for hit in hits],
        "index": index.id,
        "scope": scope.connection_ids,
    }
    (row,) = read(_VECTORS, parameters, timeout_seconds=timeout_seconds)
    vectors = np.zeros((len(hits), index.dim), np.float32)
    if row["places"]:
        stored = np.frombuffer(row["vectors"], np.uint8).reshape(len(row["places"]), -1)
        vectors[np.array(row["places"]) - 1] = np.ascontiguousarray(stored[:, _HEADER:]).view(_HALF)
    return vectors
