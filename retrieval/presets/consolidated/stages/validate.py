"""Looking whether there is anything to search."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from retrieval.engine.about import About, BaseStage, StageGroup
from retrieval.engine.state import Note, SearchState
from retrieval.errors import SearchTimeoutError
from retrieval.index.section_counts import named_documents


@dataclass(frozen=True, slots=True)
class ValidateScope(BaseStage):
    """Say which documents of the request are not there, and whether the model can be asked."""

    name: ClassVar[str] = "validate"
    needs: ClassVar[frozenset[str]] = frozenset({"section", "scope"})
    about: ClassVar[About] = About(
        "validated",
        "Looks whether the scope holds anything that can be searched.",
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

        The filter stays as it is, also where none of the documents that it names is there: the recovery cascade may
        give it up. Hidden documents and those that never were are counted together.
        """
        return state.noted(*self._notes(state))

    def _notes(self, state: SearchState) -> Iterator[Note]:
        if not state.scope.connection_ids:
            yield Note("no_compartment", "Nothing is in scope, so there is nothing to search.")
            return
        if state.vector is None:
            yield Note("words_alone", "There is no vector of the query: the words are searched for alone.")
        if missing := _missing(state):
            asked = len(state.filter.documents)
            yield Note("documents_missing", f"{missing} of the {asked} documents asked for are not there.")


def _missing(state: SearchState) -> int:
    """Return how many documents that the request names are not in scope; 0 where there was no time to look."""
    documents = state.filter.documents
    if not documents:
        return 0
    try:
        there = named_documents(documents, scope=state.scope, timeout_seconds=state.deadline.leg_seconds)
    except SearchTimeoutError:
        return 0
    return len(documents) - there
