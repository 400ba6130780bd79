"""Reads the neighbours of hits, in scope, in one statement."""

from collections.abc import Mapping
from typing import Any, Final

from corecube.scope import AccessScope
from retrieval.engine.types import ChunkFacts, ChunkId, Hit, Ranking, ScoreType
from retrieval.index.reading import chunk_keys, read
from retrieval.index.statements import statement
from retrieval.index.types import Neighbour, Relation

NEIGHBOURS: Final = statement("neighbours")
_FACTS: Final = (
    *("connection_id", "title", "uri", "source_type", "text", "token_count", "content_hash"),
    *("page_start", "page_end", "row_start", "row_end", "synced_at", "modified_at", "quality", "status"),
)


def neighbours_of(
    hits: Ranking, *, reach: Mapping[str, int], scope: AccessScope, min_quality: float, timeout_seconds: float
) -> tuple[Neighbour, ...]:
    """Return the neighbours of the hits: those of the first hit first, each relation in the document's order.

    A chunk may be there several times, for several hits and as several relations. It has facts, and neither a score nor
    signals. Boilerplate is left out. Raises SearchTimeoutError. `reach` has `parents`, 1 for the rest of a hit's
    section and 0 for none of it, `same_page`, chunks on either side on its page, and `cross_page`, chunks of the pages
    before and after, of both together.
    """
    parameters = neighbour_parameters(hits, reach, scope, min_quality)
    neighbours = []
    for row in read(NEIGHBOURS, parameters, timeout_seconds=timeout_seconds):
        facts = ChunkFacts(**{name: row[name] for name in _FACTS}, heading_path=tuple(row["heading_path"]))
        hit = Hit(ChunkId(row["document_id"], row["ordinal"]), 0.0, ScoreType.RUBRIC, facts=facts)
        neighbours.append(Neighbour(hit, Relation(row["relation"]), ChunkId(row["document_id"], row["hit"])))
    return tuple(neighbours)


def neighbour_parameters(
    hits: Ranking, reach: Mapping[str, int], scope: AccessScope, min_quality: float
) -> dict[str, Any]:
    """Return the statement's parameters."""
    return {
        **chunk_keys(hits),
        **reach,
        "parents": bool(reach["parents"]),
        "min_quality": min_quality,
        "scope": scope.connection_ids,
    }
