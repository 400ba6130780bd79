"""Reading the query as full-text search sees it."""

from dataclasses import dataclass, replace
from typing import ClassVar

from retrieval.index import store
from retrieval.types import Note, SearchState


@dataclass(frozen=True, slots=True)
class Analyze:
    """Split the query into lexemes and look up how rare each is in scope."""

    text_search_config: str

    name: ClassVar[str] = "analyze"
    needs: ClassVar[frozenset[str]] = frozenset({"query", "scope"})
    gives: ClassVar[frozenset[str]] = frozenset({"terms"})
    optional: ClassVar[bool] = False

    def __call__(self, state: SearchState) -> SearchState:
        """Return the state with the query's terms."""
        terms = store.analyze(
            state.query.retrieval_text,
            scope=state.scope,
            config=self.text_search_config,
            timeout_seconds=state.deadline.remaining_seconds,
        )
        return replace(state, terms=terms, notes=(*state.notes, *_cut_note(state)))


def _cut_note(state: SearchState) -> tuple[Note, ...]:
    """Return a note when retrieval reads only the beginning of the query."""
    sent, read = len(state.query.text), len(state.query.retrieval_text)
    return (Note("query_cut", f"Retrieval reads the first {read} of {sent} characters."),) if read < sent else ()
