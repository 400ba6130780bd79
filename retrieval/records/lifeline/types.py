"""What is told of a document's way through a search: frozen data, free of Django."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from uuid import UUID

from corecube.scope import ExcludedConnection, Inclusion
from retrieval.engine.types import ChunkId, Hit
from retrieval.index.types import DocumentProbe, Place

#: The steps before and after the stages of a pipeline.
INDEXED = "indexed"
ACCESS = "allowed"
SCOPE = "scope"
TOP_K = "top_k"
PACKED = "packed"


class StepState(StrEnum):
    """How a document came through a step."""

    PASSED = "passed"
    #: A leg did not find it, but another one did.
    MISSED = "missed"
    #: It came through, but the step fell back or was cut short.
    DEGRADED = "degraded"
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

    #: A stage's name, or one of the words above for what stands before and after the stages.
    name: str
    state: StepState
    #: One short clause with its numbers.
    fact: str = ""
    #: What would have let it pass here; empty where it passed or nothing would.
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class Way:
    """What became of some of a document's chunks."""

    #: The step that they ended at; empty for those that no leg found.
    ended_at: str
    chunks: int
    is_packed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Lifeline:
    """A document's way through a search."""

    document_id: UUID
    #: Empty where the reader may know that it exists but not what it is.
    title: str
    source: str
    steps: tuple[Step, ...]
    #: The grant that opens it to the search's principal, or the rule that keeps it from them.
    inclusion: Inclusion | None = None
    exclusion: ExcludedConnection | None = None
    #: The chunk that came furthest, with its facts, and what became of all of them.
    followed: Hit | None = None
    ways: tuple[Way, ...] = ()
    #: The N of its passage [N]; None when it was not packed.
    citation: int | None = None

    @property
    def lost_at(self) -> Step | None:
        """The first step that dropped it; None when it was packed."""
        return next((step for step in self.steps if step.state is StepState.DROPPED), None)
