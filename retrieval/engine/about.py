"""What a stage tells people about itself. The console knows no stage by its name."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from retrieval.engine.state import SearchState


class StageGroup(StrEnum):
    """The part of a search that a stage belongs to, in order."""

    QUESTION = "question"
    FIND = "find"
    MERGE = "merge"
    RANK = "rank"
    PACK = "pack"


@dataclass(frozen=True, slots=True)
class About:
    """What the console shows of a stage."""

    #: The word that heads its column: what it leaves behind.
    label: str
    #: What it does, in a sentence.
    purpose: str
    group: StageGroup = StageGroup.RANK
    #: What it leaves is counted in these; empty for a stage that leaves nothing to count.
    unit: str = "hits"
    #: The section of a preset's configuration that it is set by; empty for none.
    section: str = ""
    #: Counts what it left, where that is not its hits; None for nothing.
    left: Callable[[SearchState], int | None] | None = None
