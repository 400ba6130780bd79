"""Query analysis for full-text search."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar, Self

from corecube.scope import AccessScope
from retrieval.encoders.model_table import knows_language
from retrieval.engine.about import About, BaseStage, StageGroup
from retrieval.engine.query import corrected
from retrieval.engine.state import Note, SearchState
from retrieval.engine.tunables import Tunables, costly
from retrieval.engine.types import Correction, CountTokens, QueryTerms
from retrieval.index import store
from retrieval.stages.resources import Resources
from retrieval.text.language import question_language


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
class Corrector:
    """What corrects misspelled words."""

    model: str  #: Name of the embedding model.
    count_tokens: CountTokens  #: By its tokenizer, for which common words are one token.
    embed: Callable[[SearchState], SearchState] | None = None  #: Embeds the corrected query, where it was embedded.

    @classmethod
    def of(cls, resources: Resources, embed: Callable[[SearchState], SearchState] | None = None) -> Self:
        """Return it for the installation's embedding model."""
        return cls(resources.encoder.name, resources.count_each, embed)


@dataclass(frozen=True, slots=True)
class Analyze(BaseStage, name="analyze", needs={"query", "scope"}, gives={"terms"}):
    """Split the query into lexemes, in every language of the scope, and look up how rare each is there.

    Words that occur nowhere in scope are corrected if one letter makes them a word that does, or one of the most common
    words of the language.
    """

    text_search_config: str  #: Text search configuration of connections that name none.
    is_websearch: bool = False  #: Whether PostgreSQL reads every query's syntax, not only quotes, minus and OR.
    corrector: Corrector | None = None  #: None to leave words as they are typed.

    about: ClassVar[About] = About(
        "terms",
        "Splits the query into lexemes, counts how many chunks in scope contain each, and corrects misspelled words.",
        group=StageGroup.QUESTION,
        unit="terms",
        section="query",
        left=lambda state: len(state.terms.terms),
        notes={
            "query_cut": "query shortened",
            "query_corrected": "spelling corrected",
            "embed_failed": "query not embedded",
            "embed_timeout": "query embedding timed out",
        },
        badges=frozenset({"query_cut", "query_corrected"}),
    )

    def __call__(self, state: SearchState) -> SearchState:
        """Return the state with the terms of the query, corrected and embedded again if words are misspelled."""
        sent, read = len(state.query.text), len(state.query.retrieval_text)
        terms = state.prefetched(self.name, partial(self.read, state))
        prefetch = {name: wait for name, wait in state.prefetch.items() if name != self.name}
        state = replace(with_terms(state, terms), prefetch=prefetch)
        if terms.corrections:
            if self.corrector and self.corrector.embed and state.vector is not None:
                state = self.corrector.embed(replace(state, vector=None))
            state = state.noted(Note("query_corrected", corrected_text(terms.corrections)))
        if read == sent:
            return state
        return state.noted(Note("query_cut", f"Retrieval reads the first {read:,} of {sent:,} characters."))

    def read(self, state: SearchState) -> QueryTerms:
        """Return the query's terms; raise SearchTimeoutError, DatabaseUnavailableError."""
        query, scope, languages = state.query, state.scope, languages_of(state.scope, self.text_search_config)
        timeout = state.deadline.read_seconds
        terms = store.analyze(
            query, scope=scope, languages=languages, is_websearch=self.is_websearch, timeout_seconds=timeout
        )
        language = question_language(query.for_models) or terms.language
        if self.corrector is None or not knows_language(self.corrector.model, language):
            return terms
        counts = self.corrector.count_tokens
        return store.corrected(
            terms, query=query, scope=scope, languages=languages, count_tokens=counts, timeout_seconds=timeout
        )


def with_terms(state: SearchState, terms: QueryTerms) -> SearchState:
    """Return the state with the terms of its query, and the query as they correct it."""
    query = corrected(state.query, terms.corrections) if terms.corrections else state.query
    return replace(state, terms=terms, query=query)


def corrected_text(corrections: Sequence[Correction]) -> str:
    """Return the sentence that tells of corrections."""
    named = ", ".join(f"“{it.meant}” instead of “{it.typed}”" for it in corrections)
    return f"Searched for {named}: nothing that was searched contains what was typed."


def languages_of(scope: AccessScope, default: str) -> list[str]:
    """Return the text search configurations of a scope's connections, at least one: first the default, then by name."""
    found = {it.connection.language or default for it in scope.included} or {default}
    return sorted(found, key=lambda it: (it != default, it))
