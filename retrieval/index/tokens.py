"""Reading the stored vectors of chunks' tokens, in scope."""

from typing import Final

from corecube.scope import AccessScope
from retrieval.encoders.late_interaction import TokenVectors
from retrieval.engine.types import ChunkId, Ranking
from retrieval.index.reading import read
from retrieval.index.statements import statement

_TOKENS: Final = statement("pool_tokens")


def token_vectors_of(
    hits: Ranking, *, model_key: int, dim: int, scope: AccessScope, timeout_seconds: float
) -> dict[ChunkId, TokenVectors]:
    """Return the token vectors of hits in scope that a model made; a hit without any is left out.

    Raises SearchTimeoutError.
    """
    parameters = {
        "documents": [hit.chunk_id.document_id for hit in hits],
        "ordinals": [hit.chunk_id.ordinal for hit in hits],
        "model": model_key,
        "scope": scope.connection_ids,
    }
    rows = read(_TOKENS, parameters, timeout_seconds=timeout_seconds)
    return {
        ChunkId(row["document_id"], row["ordinal"]): TokenVectors.read(bytes(row["steps"]), bytes(row["scales"]), dim)
        for row in rows
    }
