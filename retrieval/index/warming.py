"""Loading what searches read from the disk into memory, before the first search."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from corecube.scope import AccessScope
from retrieval.index.reading import read, rows
from retrieval.index.statements import statement
from retrieval.index.store import VectorIndex, dense_hnsw
from retrieval.models import Embedding

_MEANS: Final = statement("upkeep/warm_means")
_RELATIONS: Final = statement("upkeep/warm_relations")
_READ_PIECE: Final = "SELECT coalesce(length(pg_read_binary_file(%s, %s, %s, true)), 0)"
#: After the HNSW index; what a search looks a chunk up by, the rows, and what words and names are found by.
_NAMES: Final = (
    *("retrieval_embedding_pkey", "retrieval_chunk_pkey", "retrieval_document_pkey"),
    *("retrieval_document", "retrieval_embedding", "retrieval_chunk", "term_frequency_by_lexeme", "chunk_search"),
    *("document_name_by_key", "retrieval_documentname"),
    *("chunk_mentions_by_key", "retrieval_chunkmentions_pkey", "retrieval_chunkmentions"),
)
_MAX_BYTES: Final = 3 * 2**30  #: More is left to the searches.
_PIECE_BYTES: Final = 8 * 2**20
_SEGMENT_BYTES: Final = 2**30
_WALKS: Final = 8  #: Number of walks through the HNSW index: its upper layers, and the regions of queries.
_WALK_SECONDS: Final = 2.0


def warm_relations(index: VectorIndex) -> str:
    """Bring an embedding index and the rows behind it into memory, as far as the server allows and 3 GiB reach.

    Return how, and how many bytes: "pg_prewarm", into the server's own buffers; "read", into the system's; "walked", as
    far as searches went.
    """
    (means,) = read(_MEANS, {})
    names = [f"retrieval_embedding_hnsw_{index.id}", *_NAMES]
    relations = read(_RELATIONS, {"names": names})
    if means["prewarms"]:
        return f"pg_prewarm {_prewarm(relations, limit=min(means['buffers'] // 2, _MAX_BYTES))}"
    if means["reads"]:
        return f"read {_read_through(relations)}"
    return "walked 0"


def walk(index: VectorIndex, *, scope: AccessScope) -> int:
    """Scan the HNSW index for a few of its vectors, discard the results, and return the number of scans."""
    own = Embedding.objects.filter(index_id=index.id, connection_id__in=scope.connection_ids)
    vectors = [it.vector.to_numpy() for it in own.only("vector")[:_WALKS]]
    for vector in vectors:
        dense_hnsw(vector, scope=scope, index=index, depth=100, ef_search=200, timeout_seconds=_WALK_SECONDS)
    return len(vectors)


def _prewarm(relations: Sequence[Mapping[str, Any]], *, limit: int) -> int:
    done = 0
    for relation in relations:
        if done + relation["bytes"] <= limit:
            rows("SELECT pg_prewarm(%s::regclass)", [relation["name"]])
            done += relation["bytes"]
    return done


def _read_through(relations: Sequence[Mapping[str, Any]]) -> int:
    """Let the server read relations' files, which are of 1 GiB, a piece at a time, so that the system keeps them."""
    done = 0
    for relation in relations:
        for start in range(0, min(relation["bytes"], _MAX_BYTES - done), _PIECE_BYTES):
            number, offset = divmod(start, _SEGMENT_BYTES)
            path = f"{relation['path']}.{number}" if number else relation["path"]
            ((size,),) = rows(_READ_PIECE, [path, offset, _PIECE_BYTES])
            done += size
    return done
