"""What a request leaves of its scope's documents, as people read it."""

from collections.abc import Iterator

from retrieval.engine.metadata_conditions import Condition, Conditions
from retrieval.engine.state import RequestFilter
from retrieval.engine.stored_filter import FullFilter


def filter_words(asked: FullFilter) -> tuple[str, ...]:
    """Return one clause for each part: "remembered as decision", "project atlas", "author is Ann"."""
    return (*_of_memory(asked.filter), *_of_metadata(asked.conditions))


def _of_memory(kept: RequestFilter) -> Iterator[str]:
    if kept.memory_types:
        yield f"memory type {' or '.join(sorted(kept.memory_types))}"
    if kept.project:
        yield f"project {kept.project}"
    if kept.since:
        yield f"from {kept.since:%-d %b %Y %H:%M}"
    if kept.until:
        yield f"until {kept.until:%-d %b %Y %H:%M}"


def _of_metadata(conditions: Conditions | None) -> Iterator[str]:
    if conditions is None:
        return
    clauses = [_clause(condition) for condition in conditions.each]
    if conditions.all_of:
        yield from clauses
    else:
        yield " or ".join(clauses)


def _clause(condition: Condition) -> str:
    value = condition.value
    shown = f"{value:g}" if isinstance(value, float) else value if isinstance(value, str) else ", ".join(value or ())
    return " ".join(filter(None, (" or ".join(condition.names), condition.operator, shown)))
