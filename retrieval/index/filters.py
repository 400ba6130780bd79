"""Adds a request's filter to the scope of a search statement, with what its conditions on metadata leave.

And counts what there is in a scope for a section to ask of: documents and chunks, as far as it matters.
"""

import json
import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

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
_PROJECTS: Final = prepared("projects")
_TABLE: Final = re.compile(r"\bFROM (retrieval_\w+)")
_CHUNKS: Final = "retrieval_chunk"
_WALK: Final = "%(candidates)s"  #: What only a statement that walks an HNSW index takes.
_MAX_PROJECTS: Final = 1000
_MAX_NAMES: Final = 20  #: Maximum number of filter fields; a PostgreSQL function has at most 100 arguments.
_LIMIT: Final = 50_000  #: Different combinations of facts that are read.
_SCOPE_DOCUMENTS: Final = statement("scope_documents")
_SCOPE_CHUNKS: Final = statement("scope_chunks")
_NAMED: Final = statement("named_documents")
_LAST: Final = statement("upkeep/last_searches")
#: How far back searches tell how a compartment fares, and how many of each are looked at.
_PERIOD: Final = timedelta(minutes=10)
_MAX_SEARCHES: Final = 100
#: Searches of a compartment from which on a share means something, and the share of them that makes it a failing one.
MIN_SEARCHES: Final = 5
FAILING_SHARE: Final = 0.5
#: What a search says that ran out of time, or that found nothing although everything was tried.
_TIMED_OUT: Final = ("deadline_exceeded_", "soft_cancelled_", "timed_out_")
_FAILED: Final = frozenset(
    {"dense_timeout", "bm25_timeout", "fulltext_timeout", "fallback_exhausted", "recovery_out_of_time"}
)


def filtered(
    sql: str, parameters: dict[str, Any], request_filter: RequestFilter, *, document: str = ""
) -> tuple[str, dict[str, Any]]:
    """Return a statement that reads chunks, limited to what a filter keeps, with its parameters.

    It is as it was where the filter leaves nothing out. `document` is what the statement calls a chunk's document, with
    its table ("wanted.document_id"), where that is not the column of the first table that it reads; then only the
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
    rows = read(_PROJECTS, {"scope": scope.connection_ids, "limit": _MAX_PROJECTS}, timeout_seconds=timeout_seconds)
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


@dataclass(frozen=True, slots=True)
class ScopeCounts:
    """What a request's filter leaves of a scope."""

    documents: int  #: Counted up to one more than the number in question.
    #: By compartment; those of several compartments are counted up to a bound that all of them share.
    chunks: Counter[str] = field(default_factory=Counter)


def scope_counts(
    scope: AccessScope, request_filter: RequestFilter, *, max_documents: int, sparse_below: int, timeout_seconds: float
) -> ScopeCounts:
    """Return how much a filter leaves of a scope, counted up to one more than `max_documents` documents.

    Chunks are counted until one compartment must have `sparse_below`. Raises SearchTimeoutError.
    """
    # Kinds of content and quality belong to chunks: a document has some of each.
    of_documents = replace(request_filter, hint="", min_quality=0.0)
    parameters: dict[str, Any] = {"scope": scope.connection_ids, "limit": max_documents + 1}
    sql, parameters = filtered(_SCOPE_DOCUMENTS, parameters, of_documents, document="document.id")
    documents = len(read(sql, parameters, timeout_seconds=timeout_seconds))
    compartments = {it.connection.id: it.connection.compartment for it in scope.included}
    parameters = {"scope": scope.connection_ids, "limit": sparse_below * len(set(compartments.values())) + 1}
    sql, parameters = filtered(_SCOPE_CHUNKS, parameters, request_filter)
    chunks = Counter(dict.fromkeys(compartments.values(), 0))
    for row in read(sql, parameters, timeout_seconds=timeout_seconds):
        chunks[compartments[row["connection_id"]]] += row["chunks"]
    return ScopeCounts(documents, chunks)


def named_documents(documents: Collection[UUID], *, scope: AccessScope, timeout_seconds: float) -> int:
    """Return how many of these documents are in scope; raise SearchTimeoutError."""
    parameters = {"documents": sorted(documents), "scope": scope.connection_ids}
    (row,) = read(_NAMED, parameters, timeout_seconds=timeout_seconds)
    return int(row["documents"])


def failing_compartments(scope: AccessScope, *, now: datetime, timeout_seconds: float) -> frozenset[str]:
    """Return the compartments in scope whose latest searches timed out or found nothing; raise SearchTimeoutError.

    Of all users: the state of a compartment is the same for everybody. Those with numbers or less time of the
    request's own are left out, so that nobody makes a compartment a failing one by asking for too much too soon.
    """
    own: dict[str, set[int]] = {}
    for inclusion in scope.included:
        own.setdefault(inclusion.connection.compartment, set()).add(inclusion.connection.id)
    compartments = json.dumps([sorted(ids) for ids in own.values()])
    parameters = {"compartments": compartments, "since": now - _PERIOD, "limit": _MAX_SEARCHES}
    failed: list[list[bool]] = [[] for _ in own]
    for row in read(_LAST, parameters, timeout_seconds=timeout_seconds):
        # Django's cursor hands binary JSON over as text.
        codes = json.loads(row["degraded"]) if isinstance(row["degraded"], str) else row["degraded"]
        listed = codes if isinstance(codes, list) else []
        failed[row["place"] - 1].append(any(it in _FAILED or it.startswith(_TIMED_OUT) for it in listed))
    return frozenset(name for name, outcomes in zip(own, failed, strict=True) if is_failing(outcomes))


def is_failing(outcomes: Sequence[bool]) -> bool:
    """Return whether so many of a compartment's searches failed that more is requested from it."""
    return len(outcomes) >= MIN_SEARCHES and sum(outcomes) >= FAILING_SHARE * len(outcomes)
