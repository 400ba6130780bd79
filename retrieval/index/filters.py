"""Putting a request's filter beside the scope of a search statement."""

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

from corecube.scope import AccessScope
from retrieval.index.kept import kept_parameters
from retrieval.index.reading import read
from retrieval.index.statements import kept_clause, statement
from retrieval.types import RequestFilter

_FILTERED: Final = statement("filtered")
_HOLDS: Final = statement("filter_holds")
_PROJECTS: Final = statement("projects")
_IN_SCOPE: Final = re.compile(r"connection_id(?: \+ 0)? = ANY\(%\(scope\)s\)")
_DOCUMENT: Final = "document_id IN ("
#: Projects that a question is compared with.
_MOST_PROJECTS: Final = 1000


def filtered(
    sql: str, parameters: dict[str, Any], kept: RequestFilter, *, document: str = "document_id"
) -> tuple[str, dict[str, Any]]:
    """Return a statement that reads chunks, limited to what a filter keeps, with its parameters.

    It is as it was where the filter leaves nothing out. `document` is what the statement calls a chunk's document.
    """
    if not kept:
        return sql, parameters
    clause = "\n".join(_clauses(kept)).replace(_DOCUMENT, f"{document} IN (")
    limited = _IN_SCOPE.sub(lambda found: f"{found[0]}\n{clause}", sql, count=0 if document == "document_id" else 1)
    return limited, parameters | _parameters(kept)


def holds_any(kept: RequestFilter, *, scope: AccessScope, timeout_seconds: float) -> bool:
    """Return whether any document in scope is kept by a filter; raise SearchTimeoutError."""
    parameters = {"scope": scope.connection_ids} | _parameters(kept)
    sql, parameters = filtered(_HOLDS, parameters, kept)
    return bool(read(sql, parameters, timeout_seconds=timeout_seconds))


def known_projects(scope: AccessScope, *, timeout_seconds: float) -> list[str]:
    """Return the projects of the remembered items in scope, at most 1,000; raise SearchTimeoutError."""
    rows = read(_PROJECTS, {"scope": scope.connection_ids, "most": _MOST_PROJECTS}, timeout_seconds=timeout_seconds)
    return [row["project"] for row in rows]


def _clauses(kept: RequestFilter) -> Iterator[str]:
    if replace(kept, kept=None):
        yield _FILTERED
    if kept.kept is not None:
        yield kept_clause(kept.kept)


def _parameters(kept: RequestFilter) -> dict[str, Any]:
    return kept_parameters(kept.kept) | {
        "kept_since": kept.since,
        "kept_until": kept.until,
        "kept_project": kept.project,
        "kept_kinds": sorted(kept.memory_types),
    }
