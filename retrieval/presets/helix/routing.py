"""The routing of a question."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from retrieval.engine.types import MemoryType


@dataclass(frozen=True, slots=True)
class TimeWindow:
    """A time range in a question; None is open."""

    since: datetime | None = None
    until: datetime | None = None
    #: The words in the question: "last week".
    words: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Routing:
    """The router's decision for a question."""

    #: The question needs no search.
    skip: bool = False
    #: The requested type; None if no route is clearly the nearest.
    memory_type: MemoryType | None = None
    project: str = ""
    window: TimeWindow | None = None
    #: The nearest routes' cosine with the question, best first, by name.
    likeness: Mapping[str, float] = field(default_factory=dict)
