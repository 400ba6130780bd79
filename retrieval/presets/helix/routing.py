"""What the router of `helix` makes of a question: frozen, free of Django."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from retrieval.engine.types import MemoryType


@dataclass(frozen=True, slots=True)
class TimeWindow:
    """From when to when, as a question says it; None is open."""

    since: datetime | None = None
    until: datetime | None = None
    #: The words of the question that say it: "last week".
    words: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Routing:
    """What the router made of a question."""

    #: Nothing is to be searched: the question needs no memory.
    skip: bool = False
    #: The type that the question asks for; None where no route is clearly the nearest.
    memory_type: MemoryType | None = None
    project: str = ""
    window: TimeWindow | None = None
    #: The nearest routes' cosine with the question, best first, by name.
    likeness: Mapping[str, float] = field(default_factory=dict)
