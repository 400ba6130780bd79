"""Reading the query as full-text search sees it."""

from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

from corecube.errors import DatabaseUnavailableError
from corecube.scope import AccessScope
from retrieval.engine.about import About, StageGroup
from retrieval.engine.state import Note, SearchState
from retrieval.engine.tunables import Tunables, tunable
from retrieval.engine.types import QueryTerms
from retrieval.index import store


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryConfig(Tunables):
    """How a query is read."""

    retrieval_characters: int = tunable(
        500,
        low=50,
        high=4000,
        unit="characters",
        help="Part of the query that retrieval reads; a model gets all of it.",
        costs=True,
    )


@dataclass(frozen=True, slots=True)
class Analyze:
    """Split the query into lexemes, in every language of the scope, and look up how rare each is there."""

    #: Text search configuration of connections that name none.
    text_search_config: str

    name: ClassVar[str] = "analyze"
    needs: ClassVar[frozenset[str]] = frozenset({"query", "scope"})
    gives: ClassVar[frozenset[str]] = frozenset({"terms"})
    optional: ClassVar[bool] = False
    about: ClassVar[About] = About(
        "terms",
        "Splits the query into lexemes and counts how many chunks in scope hold each.",
        group=StageGroup.QUESTION,
        unit="terms",
        section="query",
        left=lambda state: len(state.terms.terms),
        notes={"query_cut": "query shortened"},
        badges=frozenset({"query_cut"}),
    )

    def __call__(self, state: SearchState) -> SearchState:
        """Return the state with the query's terms, which may have been read ahead."""
        try:
            terms = state.prefetched(self.name, partial(self.read, state))
        except DatabaseUnavailableError:
            # The other thread may have found no connection free; this one has one.
            terms = self.read(state)
        notes = (*state.notes, *_cut_note(state))
        return replace(state, terms=terms, prefetch=state.prefetch_without(self.name), notes=notes)

    def read(self, state: SearchState) -> QueryTerms:
        """Return the query's terms; raise SearchTimeoutError, DatabaseUnavailableError."""
        return store.analyze(
            state.query,
            scope=state.scope,
            languages=self._languages(state.scope),
            timeout_seconds=state.deadline.read_seconds,
        )

    def _languages(self, scope: AccessScope) -> list[str]:
        """Return the text search configurations of the connections in scope; the installation's for an empty scope."""
        languages = {inclusion.connection.language or self.text_search_config for inclusion in scope.included}
        return sorted(languages) or [self.text_search_config]


def _cut_note(state: SearchState) -> tuple[Note, ...]:
    """Return a note when retrieval reads only the beginning of the query."""
    sent, read = len(state.query.text), len(state.query.retrieval_text)
    return (Note("query_cut", f"Retrieval reads the first {read} of {sent} characters."),) if read < sent else ()
