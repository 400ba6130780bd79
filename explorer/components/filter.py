"""The document filters of a request, in words."""

from collections.abc import Iterator

from retrieval.engine.metadata_conditions import Condition, Conditions
from retrieval.engine.state import RequestFilter
from retrieval.engine.stored_filter import FullFilter


def filter_words(limits: FullFilter) -> tuple[str, ...]:
    """Return a clause for each condition: "memory type decision", "project atlas", "author is Ann"."""
    return (*_of_memory(limits.filter), *_of_metadata(limits.conditions))


def _of_memory(memory: RequestFilter) -> Iterator[str]:
    if memory.memory_types:
        yield f"memory type {' or '.join(sorted(memory.memory_types))}"
    if memory.project:
        yield f"project {memory.project}"
    if memory.since:
        yield f"from {memory.since:%-d %b %Y %H:%M}"
    if memory.until:
        yield f"until {memory.until:%-d %b %Y %H:%M}"


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
