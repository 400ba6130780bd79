"""The second access check."""

from dataclasses import dataclass, replace
from typing import ClassVar

from retrieval.engine.about import About, BaseStage, StageGroup
from retrieval.engine.state import Drop, DropReason, Note, SearchState


@dataclass(frozen=True, slots=True)
class CheckAccess(BaseStage, name="access", needs={"hits", "facts", "scope"}):
    """Check the connection of each hit against the scope again.

    Every search statement applies the scope, so a drop here is a defect and is shown as one.
    """

    about: ClassVar[About] = About(
        "access check",
        "Checks each hit's connection against the scope a second time.",
        group=StageGroup.MERGE,
        drops=(DropReason.ACCESS,),
        badges=frozenset({"access_breach"}),
    )

    def __call__(self, state: SearchState) -> SearchState:
        """Return the state with only hits that the scope allows."""
        hits = tuple(hit for hit in state.hits if state.scope.allows(hit.chunk.connection_id))
        drops = tuple(
            Drop(hit.chunk_id, DropReason.ACCESS)
            for hit in state.hits
            if not state.scope.allows(hit.chunk.connection_id)
        )
        notes = (Note("access_breach", f"{len(drops)} hits out of scope were removed."),) if drops else ()
        return replace(state, hits=hits, access_checked=True, drops=(*state.drops, *drops)).noted(*notes)
