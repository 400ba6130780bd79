"""Checking that there is something to search."""

from dataclasses import dataclass
from typing import ClassVar

from retrieval.engine.about import About, BaseStage, StageGroup
from retrieval.engine.state import Note, SearchState
from retrieval.errors import SearchTimeoutError
from retrieval.index.section_counts import named_documents


@dataclass(frozen=True, slots=True)
class ValidateScope(BaseStage, name="validate", needs={"section", "scope"}):
    """Note requested documents that are not found, and a missing query vector."""

    about: ClassVar[About] = About(
        "validated",
        "Checks that the scope contains something to search.",
        group=StageGroup.QUESTION,
        unit="",
        notes={
            "no_compartment": "nothing in scope",
            "words_alone": "text only",
            "documents_missing": "documents not found",
        },
        badges=frozenset({"no_compartment", "words_alone", "documents_missing"}),
    )

    def __call__(self, state: SearchState) -> SearchState:
        """Return the state with a note for what is missing.

        The filter stays unchanged even if none of its documents exists: the recovery cascade may drop it. Hidden and
        non-existing documents are counted together.
        """
        documents = state.filter.documents
        if not state.scope.connection_ids:
            return state.noted(Note("no_compartment", "Nothing is in scope, so there is nothing to search."))
        if state.vector is None:
            state = state.noted(Note("words_alone", "The query has no vector: only text is searched."))
        if not documents:
            return state
        try:
            found = named_documents(documents, scope=state.scope, timeout_seconds=state.deadline.leg_seconds)
        except SearchTimeoutError:
            return state
        if missing := len(documents) - found:
            text = f"{missing} of the {len(documents)} requested documents were not found."
            state = state.noted(Note("documents_missing", text))
        return state
