"""The full-text leg."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from retrieval.config import FulltextConfig
from retrieval.errors import SearchTimeoutError
from retrieval.index import store
from retrieval.types import Note, Ranking, SearchState, Term


@dataclass(frozen=True, slots=True)
class Fulltext:
    """Find the chunks in scope that hold the query's terms: all of them first, then any of the rare ones.

    A conjunction of a natural-language question matches next to nothing and a disjunction next to
    everything, so the second is made of the rarest terms whose summed document frequency stays under a cap.
    """

    config: FulltextConfig
    text_search_config: str

    name: ClassVar[str] = "fulltext"
    needs: ClassVar[frozenset[str]] = frozenset({"terms", "scope"})
    gives: ClassVar[frozenset[str]] = frozenset({"rankings"})
    optional: ClassVar[bool] = False

    def __call__(self, state: SearchState) -> SearchState:
        """Return the state with this leg's ranking; a leg that runs out of time gives none and says so."""
        try:
            ranking, note = self._search(state)
        except SearchTimeoutError:
            ranking, note = (), Note("fulltext_timeout", "The full-text leg ran out of time.", degraded=True)
        return replace(state, rankings={**state.rankings, self.name: ranking}, notes=(*state.notes, note))

    def _search(self, state: SearchState) -> tuple[Ranking, Note]:
        query = state.terms
        if not query.all_terms:
            return (), Note("fulltext_nothing", "The query has no searchable term.")
        ranking = self._matching(query.all_terms, state)
        if query.has_operators:
            return ranking, Note("fulltext_operators", "Quotes, minus and OR are taken as written.")
        if len(ranking) >= self.config.relax_below:
            return ranking, Note("fulltext_all_terms", "Enough chunks hold every term.")
        rare = rarest(query.terms, cap=self.config.relax_cap)
        if not rare:
            return ranking, Note("fulltext_unknown_terms", "No chunk in scope holds any term of the query.")
        words = ", ".join(term.lexeme for term in rare)
        text = f"{len(ranking)} chunks hold every term; relaxed to any of: {words}."
        return self._matching(store.any_of(rare), state), Note("fulltext_relaxed", text)

    def _matching(self, match: str, state: SearchState) -> Ranking:
        search = store.TextSearch(self.text_search_config, tuple(self.config.weights))
        return store.fulltext(
            match,
            terms=state.terms.terms,
            scope=state.scope,
            search=search,
            depth=self.config.depth,
            timeout_seconds=state.deadline.leg_seconds,
        )


def rarest(terms: Sequence[Term], *, cap: int) -> tuple[Term, ...]:
    """Return the rarest terms that stand anywhere, while their summed document frequency stays within `cap`.

    The rarest one is always taken. Expects the terms rarest first.
    """
    taken: list[Term] = []
    total = 0
    for term in terms:
        total += term.document_frequency
        if taken and total > cap:
            break
        if term.document_frequency:
            taken.append(term)
    return tuple(taken)
