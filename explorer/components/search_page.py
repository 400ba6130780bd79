"""What the pages that search share: menus, modes, filters, the user to search as, and how a failure is shown."""

import logging
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Final

from django.conf import settings
from django.http import QueryDict

from corecube.access import Principal, ScopeRequest
from corecube.errors import CoreCubeError
from corecube.scope import AccessScope
from retrieval.engine.metadata_conditions import Condition
from retrieval.engine.pipeline import HYBRID
from retrieval.engine.state import RequestFilter
from retrieval.engine.stored_filter import FullFilter
from retrieval.presets.catalog import DEFAULT_PRESET, PRESETS
from retrieval.presets.helix.config import HelixConfig

logger = logging.getLogger(__name__)

_SERVER_ERROR: Final = 500
_KEYWORD_LEGS: Final = frozenset({"fulltext", "bm25", "sparse"})


def with_chosen(choices: Iterable[tuple[str, str]], chosen: str) -> list[tuple[str, str]]:
    """Return the choices, value and label, and the chosen value if it is not among them.

    An address can contain a value that is not offered, such as a deleted user. It still applies and must be shown.
    """
    listed = list(choices)
    return listed if not chosen or chosen in dict(listed) else [*listed, (chosen, chosen)]


def run_as_name(principal: Principal) -> str:
    """Return the user that an admin searches as; empty for the viewer's own search."""
    return principal.user.username if principal.actor else ""


def excluded_slugs(query: QueryDict) -> tuple[str, ...]:
    """Return the slugs of the connections that a query string excludes."""
    return tuple(dict.fromkeys(filter(None, query.getlist("without"))))


def excluding(slugs: Collection[str], scope: AccessScope) -> ScopeRequest:
    """Return a request without these connections; slugs out of scope are ignored, so that they reveal nothing."""
    own = {inclusion.connection.slug for inclusion in scope.included}
    return ScopeRequest(exclude=tuple(slug for slug in slugs if slug in own))


def failure_of(error: CoreCubeError) -> dict[str, str]:
    """Return an error's message, and its code as a heading: "Query too long"."""
    return {"title": error.code.replace("_", " ").capitalize(), "message": str(error)}


def failed(error: CoreCubeError, page: str, context: Mapping[str, Any]) -> tuple[dict[str, Any], int]:
    """Return the context of a page that shows an error, and its status; a server error is logged."""
    if error.status >= _SERVER_ERROR:
        logger.error("%s.failed code=%s", page, error.code, exc_info=error)
    return {**context, "failure": failure_of(error), "announcement": str(error)}, error.status


def filter_words(limits: FullFilter) -> tuple[str, ...]:
    """Return a clause for each condition: "memory type decision", "project atlas", "author is Ann"."""
    conditions = limits.conditions
    clauses = [_clause(condition) for condition in conditions.each] if conditions else []
    if conditions and not conditions.all_of:
        clauses = [" or ".join(clauses)]
    return (*_of_memory(limits.filter), *clauses)


def _of_memory(memory: RequestFilter) -> Iterator[str]:
    if memory.memory_types:
        yield f"memory type {' or '.join(sorted(memory.memory_types))}"
    if memory.project:
        yield f"project {memory.project}"
    if memory.since:
        yield f"from {memory.since:%-d %b %Y %H:%M}"
    if memory.until:
        yield f"until {memory.until:%-d %b %Y %H:%M}"


def _clause(condition: Condition) -> str:
    value = condition.value
    shown = f"{value:g}" if isinstance(value, float) else value if isinstance(value, str) else ", ".join(value or ())
    return " ".join(filter(None, (" or ".join(condition.names), condition.operator, shown)))


def modes_of(preset: str) -> tuple[str, ...]:
    """Return the modes of a preset; those of the default one for an unknown preset."""
    found = PRESETS.get(preset, PRESETS[DEFAULT_PRESET])
    has_sparse = settings.CORECUBE_SPARSE_MODEL and isinstance(found.defaults, HelixConfig)
    return (HYBRID, *found.legs, *(("sparse",) if has_sparse else ()))


def mode_in(preset: str, mode: str) -> str:
    """Return a mode for a preset: its own keyword leg instead of one that it lacks, anything else unchanged."""
    modes = modes_of(preset)
    if mode in modes or mode not in _KEYWORD_LEGS:
        return mode
    return next((it for it in modes if it in _KEYWORD_LEGS), mode)
