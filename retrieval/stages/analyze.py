"""Query analysis for full-text search."""

from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

from corecube.scope import AccessScope
from retrieval.engine.about import About, BaseStage, StageGroup
from retrieval.engine.state import Note, SearchState
from retrieval.engine.tunables import Tunables, costly
from retrieval.engine.types import QueryTerms
from retrieval.index import store


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryConfig(Tunables):
    """How the query is processed."""

    retrieval_characters: int = costly(
        500,
        low=50,
        high=4000,
        unit="characters",
        help="Maximum length of the query in retrieval. Language models get the whole query.",
    )


@dataclass(frozen=True, slots=True)
class Analyze(BaseStage, name="analyze", needs={"query", "scope"}, gives={"terms"}):
    """Split the query into lexemes, in every language of the scope, and look up how rare each is there."""

    text_search_config: str  #: Text search configuration of connections that name none.
    is_websearch: bool = False  #: Whether PostgreSQL reads every query's syntax, not only quotes, minus and OR.

    about: ClassVar[About] = About(
        "terms",
        "Splits the query into lexemes and counts how many chunks in scope contain each.",
        group=StageGroup.QUESTION,
        unit="terms",
        section="query",
        left=lambda state: len(state.terms.terms),
        notes={"query_cut": "query shortened"},
        badges=frozenset({"query_cut"}),
    )

    def __call__(self, state: SearchState) -> SearchState:
        """Return the state with the terms of the query."""
        terms = state.prefetched(self.name, partial(self.read, state))
        prefetch = {name: wait for name, wait in state.prefetch.items() if name != self.name}
        state = replace(state, terms=terms, prefetch=prefetch)
        sent, read = len(state.query.text), len(state.query.retrieval_text)
        if read == sent:
            return state
        return state.noted(Note("query_cut", f"Retrieval reads the first {read:,} of {sent:,} characters."))

    def read(self, state: SearchState) -> QueryTerms:
        """Return the query's terms; raise SearchTimeoutError, DatabaseUnavailableError."""
        return store.analyze(
            state.query,
            scope=state.scope,
            languages=languages_of(state.scope, self.text_search_config),
            is_websearch=self.is_websearch,
            timeout_seconds=state.deadline.read_seconds,
        )


def languages_of(scope: AccessScope, default: str) -> list[str]:
    """Return the text search configurations of a scope's connections, at least one: first the default, then by name."""
    found = {it.connection.language or default for it in scope.included} or {default}
    return sorted(found, key=lambda it: (it != default, it))
