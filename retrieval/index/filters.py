"""Putting a request's filter beside the scope of a search statement."""

import re
from collections.abc import Iterator
from typing import Any, Final

from corecube.scope import AccessScope
from retrieval.engine.state import RequestFilter
from retrieval.index.kept import kept_parameters
from retrieval.index.reading import read
from retrieval.index.scope_condition import CONDITION
from retrieval.index.statements import kept_clause, prepared, statement

_FILTERED: Final = statement("parts/filtered")
_BY_DOCUMENT: Final = statement("parts/filtered_documents")
_BY_SOURCE_TYPE: Final = statement("parts/filtered_source_types")
_BY_CHUNK: Final = statement("parts/filtered_chunks")
_BY_QUALITY: Final = statement("parts/filtered_quality")
_BY_HINT: Final = statement("parts/filtered_hint")
_WALKED_BY_SOURCE_TYPE: Final = statement("parts/walked_source_types")
_WALKED_BY_CHUNK: Final = statement("parts/walked_chunks")
_HOLDS: Final = statement("filter_holds")
_PROJECTS: Final = prepared("projects")
_TABLE: Final = re.compile(r"\bFROM (retrieval_\w+)")
_CHUNKS: Final = "retrieval_chunk"
#: What only a statement that walks an HNSW index takes.
_WALK: Final = "%(candidates)s"
#: Projects that a question is compared with.
_MAX_PROJECTS: Final = 1000


def filtered(
    sql: str, parameters: dict[str, Any], kept: RequestFilter, *, document: str = ""
) -> tuple[str, dict[str, Any]]:
    """Return a statement that reads chunks, limited to what a filter keeps, with its parameters.

    It is as it was where the filter leaves nothing out. `document` is what the statement calls a chunk's document, with
    its table ("wanted.document_id"), where that is not the column of the first table that it reads; then only the
    first of its conditions on the scope is limited. Where it reads `retrieval_chunk`, it calls it that or `chunk`.
    """
    if not kept:
        return sql, parameters
    named = document or f"{_first_table(sql)}.document_id"
    clause = "\n".join((*_by_document(kept, is_walk=_WALK in sql), *_by_chunk(kept, sql)))
    clause = clause.replace("{document}", named).replace("{ordinal}", f"{named.rpartition('.')[0]}.ordinal")
    limited = CONDITION.sub(lambda found: f"{found[0]}\n{clause}", sql, count=1 if document else 0)
    return limited, parameters | _parameters(kept)


def holds_any(kept: RequestFilter, *, scope: AccessScope, timeout_seconds: float) -> bool:
    """Return whether any document in scope is kept by a filter; raise SearchTimeoutError."""
    parameters = {"scope": scope.connection_ids} | _parameters(kept)
    sql, parameters = filtered(_HOLDS, parameters, kept)
    return bool(read(sql, parameters, timeout_seconds=timeout_seconds))


def known_projects(scope: AccessScope, *, timeout_seconds: float) -> list[str]:
    """Return the projects of the remembered items in scope, at most 1,000; raise SearchTimeoutError."""
    rows = read(_PROJECTS, {"scope": scope.connection_ids, "limit": _MAX_PROJECTS}, timeout_seconds=timeout_seconds)
    return [row["project"] for row in rows]


def _first_table(sql: str) -> str:
    """Return the table that a statement reads first."""
    found = _TABLE.search(sql)
    return found[1] if found else ""


def _chunk_table(sql: str) -> str:
    """Return what a statement calls the table of chunks; empty where it does not read it."""
    if "retrieval_chunk AS chunk" in sql:
        return "chunk"
    return _CHUNKS if _CHUNKS in sql else ""


def _by_document(kept: RequestFilter, *, is_walk: bool) -> Iterator[str]:
    """Yield the conditions on what a chunk's document is."""
    if kept.since or kept.until or kept.project or kept.memory_types:
        yield _FILTERED
    if kept.kept is not None:
        yield kept_clause(kept.kept)
    if kept.documents:
        yield _BY_DOCUMENT
    if kept.source_types:
        yield _WALKED_BY_SOURCE_TYPE if is_walk else _BY_SOURCE_TYPE


def _by_chunk(kept: RequestFilter, sql: str) -> Iterator[str]:
    """Yield the conditions on what a chunk itself is."""
    if not kept.hint and not kept.min_quality:
        return
    if chunk := _chunk_table(sql):
        yield _BY_CHUNK.replace("{chunk}", chunk)
    elif _WALK in sql:
        yield _WALKED_BY_CHUNK
    else:
        yield from (_BY_QUALITY,) if kept.min_quality else ()
        yield from (_BY_HINT,) if kept.hint else ()


def _parameters(kept: RequestFilter) -> dict[str, Any]:
    return kept_parameters(kept.kept) | {
        "kept_since": kept.since,
        "kept_until": kept.until,
        "kept_project": kept.project,
        "kept_kinds": sorted(kept.memory_types),
        "kept_documents": sorted(kept.documents),
        "kept_source_types": sorted(kept.source_types),
        "kept_hint": kept.hint,
        "kept_quality": kept.min_quality,
    }
