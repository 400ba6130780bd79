"""The read models of this machine: the vector files and the BM25 index."""

from retrieval.index.bm25 import follower as bm25
from retrieval.index.vectors import follower as vectors


def keep_consistent(part: int) -> None:
    """Let each compare a part of the documents, 0 to 255, with the database, and replace what differs."""
    for it in (vectors, bm25):
        it.follower().keep_consistent(part)


def keep_up() -> bool:
    """Let each follow that this machine keeps; return whether all are well."""
    is_well = [it.follower().keep_up() for it in (vectors, bm25)]
    return all(is_well)
