"""Adds a request's filter to the scope of a search statement, with what its conditions on metadata leave."""

import json
import re
from collections.abc import Iterator
from typing import Any, Final

from corecube.errors import InvalidRequestError
from corecube.scope import AccessScope
from retrieval.engine.metadata_conditions import Conditions
from retrieval.engine.state import MetadataFilter, RequestFilter
from retrieval.index.reading import read
from retrieval.index.statements import CONDITION, FACT_VALUES, METADATA, prepared, statement, with_facts

_FILTERED: Final = statement("parts/filtered")
_BY_DOCUMENT: Final = statement("parts/filtered_documents")
_BY_SOURCE_TYPE: Final = statement("parts/filtered_source_types")
_BY_CHUNK: Final = statement("parts/filtered_chunks")
_BY_QUALITY: Final = statement("parts/filtered_quality")
_BY_HINT: Final = statement("parts/filtered_hint")
_WALKED_BY_SOURCE_TYPE: Final = statement("parts/walked_source_types")
_WALKED_BY_CHUNK: Final = statement("parts/walked_chunks")
_HOLDS: Final = statement("filter_holds")
_MEMORIES: Final = prepared("memories")
_PROJECTS: Final = prepared("projects")
_TABLE: Final = re.compile(r"\bFROM (retrieval_\w+)")
_CHUNKS: Final = "retrieval_chunk"
_WALK: Final = "%(candidates)s"  #: What only a statement that walks an HNSW index takes.
_MAX_PROJECTS: Final = 1000
_MAX_NAMES: Final = 20  #: Maximum number of filter fields; a PostgreSQL function has at most 100 arguments.
_LIMIT: Final = 50_000  #: Different combinations of facts that are read.


def filtered(
    sql: str, parameters: dict[str, Any], request_filter: RequestFilter, *, document: str = ""
) -> tuple[str, dict[str, Any]]:
    """Return a statement that reads chunks, limited to what a filter keeps, with its parameters.

    It is as it was where the filter leaves nothing out. `document` is what the statement calls a chunk's document, with
    its table ("chunk.document_id"), where that is not the column of the first table that it reads; then only the
    first of its conditions on the scope is limited. Where it reads `retrieval_chunk`, it calls it that or `chunk`.
    """
    if not request_filter:
        return sql, parameters
    table = _TABLE.search(sql)
    named = document or f"{table[1] if table else ''}.document_id"
    clause = "\n".join((*_by_document(request_filter, is_walk=_WALK in sql), *_by_chunk(request_filter, sql)))
    clause = clause.replace("{document}", named).replace("{ordinal}", f"{named.rpartition('.')[0]}.ordinal")
    limited = CONDITION.sub(lambda found: f"{found[0]}\n{clause}", sql, count=1 if document else 0)
    return limited, parameters | _parameters(request_filter)


def holds_any(request_filter: RequestFilter, *, scope: AccessScope, timeout_seconds: float) -> bool:
    """Return whether any document in scope matches a filter; raise SearchTimeoutError."""
    parameters = {"scope": scope.connection_ids} | _parameters(request_filter)
    sql, parameters = filtered(_HOLDS, parameters, request_filter)
    return bool(read(sql, parameters, timeout_seconds=timeout_seconds))


def known_projects(scope: AccessScope, *, timeout_seconds: float) -> list[str]:
    """Return the projects of the memories in scope, at most 1,000; raise SearchTimeoutError."""
    parameters = {"scope": scope.connection_ids, "limit": _MAX_PROJECTS}
    memories = [row["connection_id"] for row in read(_MEMORIES, parameters, timeout_seconds=timeout_seconds)]
    if not memories:
        return []
    rows = read(_PROJECTS, {**parameters, "memories": memories}, timeout_seconds=timeout_seconds)
    return [row["project"] for row in rows]


def _by_document(request_filter: RequestFilter, *, is_walk: bool) -> Iterator[str]:
    if request_filter.since or request_filter.until or request_filter.project or request_filter.memory_types:
        yield _FILTERED
    if request_filter.metadata is not None:
        yield with_facts(METADATA, request_filter.metadata.names)
    if request_filter.documents:
        yield _BY_DOCUMENT
    if request_filter.source_types:
        yield _WALKED_BY_SOURCE_TYPE if is_walk else _BY_SOURCE_TYPE


def _by_chunk(request_filter: RequestFilter, sql: str) -> Iterator[str]:
    if not request_filter.hint and not request_filter.min_quality:
        return
    if _CHUNKS in sql:
        chunk = "chunk" if f"{_CHUNKS} AS chunk" in sql else _CHUNKS
        yield _BY_CHUNK.replace("{chunk}", chunk)
    elif _WALK in sql:
        yield _WALKED_BY_CHUNK
    else:
        yield from (_BY_QUALITY,) if request_filter.min_quality else ()
        yield from (_BY_HINT,) if request_filter.hint else ()


def _parameters(request_filter: RequestFilter) -> dict[str, Any]:
    metadata = request_filter.metadata
    named = {} if metadata is None else {"metadata": list(metadata.facts), **_name_parameters(metadata.names)}
    return named | {
        "filter_since": request_filter.since,
        "filter_until": request_filter.until,
        "filter_project": request_filter.project,
        "filter_kinds": sorted(request_filter.memory_types),
        "filter_documents": sorted(request_filter.documents),
        "filter_source_types": sorted(request_filter.source_types),
        "filter_hint": request_filter.hint,
        "filter_quality": request_filter.min_quality,
    }


def metadata_prefilter(conditions: Conditions, *, scope: AccessScope, timeout_seconds: float) -> MetadataFilter:
    """Return what conditions leave of the scope's documents.

    Raises InvalidRequestError for too many facts, or ones of which the scope holds too many different values, and
    SearchTimeoutError.
    """
    names = conditions.names
    if len(names) > _MAX_NAMES:
        raise InvalidRequestError(f"Filters can name at most {_MAX_NAMES} fields.")
    parameters = {"scope": scope.connection_ids, "limit": _LIMIT, **_name_parameters(names)}
    rows = read(with_facts(FACT_VALUES, names), parameters, timeout_seconds=timeout_seconds)
    if len(rows) > _LIMIT:
        listed = ", ".join(names)
        raise InvalidRequestError(f"Too many different values to filter by: {listed}. Narrow the scope.")
    found = (row["facts"] for row in rows)
    return MetadataFilter(
        names, tuple(it for it in found if conditions.met_by(dict(zip(names, json.loads(it), strict=True))))
    )


def _name_parameters(names: tuple[str, ...]) -> dict[str, str]:
    return {f"fact_{number}": name for number, name in enumerate(names, start=1)}
