"""Request filters as JSON, in stored traces and in addresses."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final
from uuid import UUID

from corecube.errors import InvalidRequestError
from corecube.sanitise import storable
from retrieval.engine.metadata_conditions import OPERATORS, Condition, Conditions, Value
from retrieval.engine.state import RequestFilter
from retrieval.engine.types import MemoryType

_MAX_CHARACTERS: Final = 4000  #: Characters of a filter in an address, and conditions in it.
_MAX_CONDITIONS: Final = 50


@dataclass(frozen=True, slots=True)
class FullFilter:
    """The filter and the conditions of a request, before the conditions were looked up."""

    filter: RequestFilter = field(default_factory=RequestFilter)
    conditions: Conditions | None = None

    def __bool__(self) -> bool:
        return bool(self.filter) or self.conditions is not None

    @property
    def text(self) -> str:
        """How an address holds it; empty where it leaves nothing out."""
        return json.dumps(filter_json(self), separators=(",", ":"), ensure_ascii=False) if self else ""


def filter_json(full: FullFilter, *, keep_words: bool = True) -> dict[str, Any]:
    """Return a request's filter as JSON without empty fields; without `keep_words` no project and no conditions.

    The project and the values of conditions are free text of the user.
    """
    kept, conditions = full.filter, full.conditions if keep_words else None
    found: dict[str, Any] = {
        "since": kept.since.isoformat() if kept.since else None,
        "until": kept.until.isoformat() if kept.until else None,
        "project": kept.project if keep_words else "",
        "memory_types": sorted(kept.memory_types),
        "conditions": conditions
        and {
            "all_of": conditions.all_of,
            "each": [
                [list(it.names), it.operator, list(it.value) if isinstance(it.value, tuple | list) else it.value]
                for it in conditions.each
            ],
        },
        "documents": sorted(str(it) for it in kept.documents),
        "source_types": sorted(kept.source_types),
        "hint": kept.hint,
        "min_quality": kept.min_quality,
    }
    return {name: value for name, value in found.items() if value}


def filter_of(stored: Mapping[str, Any]) -> FullFilter:
    """Return what `filter_json` made the JSON of; raise InvalidRequestError for anything else."""
    try:
        kept = RequestFilter(
            since=_moment(stored.get("since")),
            until=_moment(stored.get("until")),
            project=_text(stored.get("project", "")),
            memory_types=frozenset(MemoryType(name) for name in stored.get("memory_types", ())),
            documents=frozenset(UUID(_text(it)) for it in stored.get("documents", ())),
            source_types=frozenset(_text(it) for it in stored.get("source_types", ())),
            hint=_text(stored.get("hint", "")),
            # Records of an earlier release say `least_quality`.
            min_quality=_share(stored.get("min_quality", stored.get("least_quality", 0.0))),
        )
        if (conditions := stored.get("conditions")) is None:
            return FullFilter(kept)
        each = tuple(_condition(*it) for it in conditions["each"][:_MAX_CONDITIONS])
        return FullFilter(kept, Conditions(each, all_of=bool(conditions["all_of"])))
    except (AttributeError, KeyError, TypeError, ValueError, OverflowError) as error:
        raise InvalidRequestError("The filter in the address is invalid.") from error


def read_filter(text: str) -> FullFilter:
    """Return the filter that an address holds; nothing for an empty text. Raises InvalidRequestError."""
    if not text:
        return FullFilter()
    try:
        stored = json.loads(text) if len(text) <= _MAX_CHARACTERS else None
    except (ValueError, RecursionError):
        stored = None
    if not isinstance(stored, dict):
        raise InvalidRequestError("The filter in the address is invalid.")
    return filter_of(stored)


def _condition(names: Sequence[str], operator: str, value: object) -> Condition:
    if operator not in OPERATORS:
        raise ValueError(operator)
    return Condition(tuple(map(_text, names)), operator, _value(value))


def _value(value: object) -> Value:
    if value is None:
        return None
    if isinstance(value, str):
        return storable(value)
    if isinstance(value, list):
        return tuple(map(_text, value))
    number = float(value)  # type: ignore[arg-type]
    if not math.isfinite(number):
        raise ValueError(value)
    return number


def _share(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise ValueError(value)
    return float(value)


def _moment(text: str | None) -> datetime | None:
    found = datetime.fromisoformat(text) if text else None
    return found.replace(tzinfo=UTC) if found and found.tzinfo is None else found


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(value)
    return storable(value)
