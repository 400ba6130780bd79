"""Checking the circuit breaker of the store."""

from dataclasses import dataclass
from typing import ClassVar

from retrieval.engine.about import About, BaseStage, StageGroup
from retrieval.engine.state import Note, SearchState
from retrieval.errors import StorePausedError
from retrieval.presets.consolidated.evidence.store_guard import StoreUse


@dataclass(frozen=True, slots=True)
class CheckStore(BaseStage, name="store", needs={"scope"}):
    """End the search while the store is paused, and note what this installation lacks of the document's."""

    lacking: tuple[Note, ...] = ()

    about: ClassVar[About] = About(
        "store",
        "Ends the search if the store failed several times in a row.",
        group=StageGroup.QUESTION,
        unit="",
        notes={"store_breaker_open": "store paused", "one_embedding_model": "one model for queries and documents"},
    )

    def __call__(self, state: SearchState) -> SearchState:
        """Return the state with the notes; raise StorePausedError while the store is paused."""
        use = state.part(StoreUse)
        if use is not None and use.is_paused:
            raise StorePausedError
        return state.noted(*self.lacking)
