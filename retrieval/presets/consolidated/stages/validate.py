"""Checking that there is something to search."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from retrieval.engine.about import About, BaseStage, StageGroup
from retrieval.engine.state import Note, SearchState
from retrieval.errors import SearchTimeoutError
from retrieval.index.section_counts import named_documents


@dataclass(frozen=True, slots=True)
class ValidateScope(BaseStage):
    """Note requested documents that are not found, and a missing query vector."""

    name: ClassVar[str] = "validate"
    needs: ClassVar[frozenset[str]] = frozenset({"section", "scope"})
    about: ClassVar[About] = About(
        "validated",
        "Checks that the scope contains something to search.",
        group=StageGroup.QUESTION,
        unit="",
        notes={
            "no_compartment": "nothing in scope",
            "words_alone": "words only",
            "documents_missing": "documents not found",
        },
        badges=frozenset({"no_compartment", "words_alone", "documents_missing"}),
    )

    def __call__(self, state: SearchState) -> SearchState:
        """Return the state with a note for what is missing.

        The filter stays unchanged even if none of its documents exists: the recovery cascade may drop it. Hidden and
        non-existing documents are counted together.
        """
        return state.noted(*self._notes(state))

    def _notes(self, state: SearchState) -> Iterator[Note]:
        if not state.scope.connection_ids:
            yield Note("no_compartment", "Nothing is in scope, so there is nothing to search.")
            return
        if state.vector is None:
            yield Note("words_alone", "The query has no vector: only text is searched.")
        if missing := _missing(state):
            requested = len(state.filter.documents)
            yield Note("documents_missing", f"{missing} of the {requested} requested documents were not found.")


def _missing(state: SearchState) -> int:
    """Return how many requested documents are not in scope; 0 on a timeout."""
    documents = state.filter.documents
    if not documents:
        return 0
    try:
        there = named_documents(documents, scope=state.scope, timeout_seconds=state.deadline.leg_seconds)
    except SearchTimeoutError:
        return 0
    return len(documents) - there
