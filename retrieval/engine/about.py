"""How a stage describes itself to people: the console and the lifeline know no stage by its name."""

from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, ClassVar

from retrieval.engine.state import DropReason, SearchState
from retrieval.engine.types import Hit


class StageGroup(StrEnum):
    """The part of a search that a stage belongs to, in order."""

    QUESTION = "question"
    FIND = "find"
    MERGE = "merge"
    RANK = "rank"
    PACK = "pack"


@dataclass(frozen=True, slots=True)
class About:
    """The description of a stage."""

    label: str  #: Heading of its column: what it leaves behind.
    purpose: str
    group: StageGroup = StageGroup.RANK
    unit: str = "hits"  #: Unit of what it leaves; empty for a stage that leaves nothing to count.
    section: str = ""
    #: Counts what it left where that is not its hits; None for nothing.
    left: Callable[[SearchState], int | None] | None = None
    drops: tuple[DropReason, ...] = ()  #: Every reason for which it drops hits.
    window: str = ""  #: The tunable that limits how many hits it leaves; empty for none.
    #: Returns the numbers that it decided by for a hit that it left, given the preset's configuration.
    fact: Callable[[Hit, Any], str] | None = None
    #: Badge texts of its notes, by code; without one the code is shown.
    notes: Mapping[str, str] = field(default_factory=dict, hash=False)
    badges: frozenset[str] = frozenset()  #: Codes of its notes that get a badge even where nothing degraded.


class BaseStage:
    """The defaults of a stage: it fills no field of the state, and no search can do without it."""

    __slots__ = ()

    name: ClassVar[str]
    needs: ClassVar[frozenset[str]] = frozenset()
    gives: ClassVar[frozenset[str]] = frozenset()
    optional: ClassVar[bool] = False

    def __init_subclass__(
        cls,
        *,
        name: str = "",
        needs: AbstractSet[str] = frozenset(),
        gives: AbstractSet[str] = frozenset(),
        optional: bool = False,
    ) -> None:
        # `dataclass` makes a class with slots a second time, without these, from what the first one has.
        if name:
            cls.name, cls.needs, cls.gives, cls.optional = name, frozenset(needs), frozenset(gives), optional


def score_fact(hit: Hit, config: Any) -> str:  # noqa: ANN401, ARG001 -- one signature for all stages
    """Return a hit's score with its type: "logit 4.210"."""
    return f"{hit.score_type} {hit.score:.3f}"
