"""The description of a document's path through a search: frozen data, free of Django."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from uuid import UUID

from corecube.scope import ExcludedConnection, Inclusion
from retrieval.engine.types import ChunkId, Hit
from retrieval.index.types import DocumentProbe, Place

INDEXED = "indexed"  #: The steps before and after the stages of a pipeline.
ACCESS = "allowed"
SCOPE = "scope"
PACKED = "packed"


class StepState(StrEnum):
    """How a document came through a step."""

    PASSED = "passed"
    MISSED = "missed"  #: A leg did not find it, but another one did.
    DEGRADED = "degraded"  #: It came through, but the step fell back or was cut short.
    DROPPED = "dropped"
    NOT_REACHED = "not_reached"


@dataclass(frozen=True, slots=True)
class Evidence:
    """All that is known of a document beside the search's own trace."""

    probe: DocumentProbe
    #: The chunks that the steps tell of, with their facts.
    chunks: Mapping[ChunkId, Hit] = field(default_factory=dict)
    #: Exact places in scope of chunks that a leg did not return, by leg; a leg that took too long to count has none.
    places: Mapping[str, Place] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Step:
    """One step of the way."""

    name: str  #: A stage's name, or one of the words above for the steps before and after the stages.
    state: StepState
    fact: str = ""  #: One short clause with its numbers.
    remedy: str = ""  #: What would have let it pass here; empty where it passed or nothing would.


@dataclass(frozen=True, slots=True)
class Way:
    """What became of some of a document's chunks."""

    ended_at: str  #: The step that they ended at; empty for those that no leg found.
    chunks: int
    is_packed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Lifeline:
    """A document's way through a search."""

    document_id: UUID
    title: str  #: Empty where the reader may know that it exists but not what it is.
    source: str
    steps: tuple[Step, ...]
    #: The grant that opens it to the search's principal, or the rule that keeps it from them.
    inclusion: Inclusion | None = None
    exclusion: ExcludedConnection | None = None
    followed: Hit | None = None  #: The chunk that came furthest, with its facts, and what became of all of them.
    ways: tuple[Way, ...] = ()
    citation: int | None = None  #: The N of its passage [N]; None when it was not packed.

    @property
    def lost_at(self) -> Step | None:
        """The first step that dropped it; None when it was packed."""
        return next((step for step in self.steps if step.state is StepState.DROPPED), None)
