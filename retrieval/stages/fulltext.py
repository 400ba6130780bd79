"""The full-text leg."""

from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar, Final

from retrieval.engine.about import About, BaseStage, StageGroup
from retrieval.engine.state import Note, SearchState
from retrieval.engine.tunables import Tunables, costly, fraction, switch, tunable
from retrieval.engine.types import Ranking
from retrieval.errors import Bm25UnavailableError, SearchTimeoutError
from retrieval.index import store
from retrieval.index.bm25.question import Composer
from retrieval.index.bm25.reader import Reader
from retrieval.index.bm25.search import fulltext_by_index
from retrieval.index.lexemes import any_of, rarest
from retrieval.stages.analyze import languages_of
from retrieval.stages.bm25 import Bm25Config, question_of

BY_INDEX: Final = "fulltext_index"
_FEW_CHUNKS: Final = 2_500  #: PostgreSQL alone searches scopes with fewer: it is as fast there.
_AS_BM25: Final = Bm25Config()  #: How candidates are weighed.
_TOO_COMMON: Final = 10  #: A phrase whose words match more than this many times the cap is not tried on all chunks.


@dataclass(frozen=True, slots=True, kw_only=True)
class FulltextConfig(Tunables, label="Full-text search"):
    """Settings of the full-text leg."""

    depth: int = costly(100, low=1, high=1000, unit="hits", help="Hits read from the full-text leg.")
    relax_below: int = costly(
        100,
        low=1,
        high=1000,
        unit="hits",
        help="Where PostgreSQL searches alone: if fewer chunks match all terms, chunks with any rare term are added.",
    )
    relax_cap: int = costly(
        5000,
        low=100,
        high=1_000_000,
        unit="chunks",
        help="Where PostgreSQL searches alone: maximum total document frequency of the rare terms that are matched.",
    )
    max_matches: int = costly(
        10_000,
        low=1,
        high=1_000_000,
        unit="chunks",
        help="Where PostgreSQL searches alone: maximum number of matches that are scored; of more, a part is ranked.",
    )
    weight_title: float = fraction(1.0, help="Weight of a term in the title.")
    weight_heading: float = fraction(0.7, help="Weight of a term in the heading path.")
    weight_text: float = fraction(0.5, help="Weight of a term in the text.")
    saturation: float = tunable(
        0.2,
        low=0.001,
        high=10.0,
        help="Rank at which a term scores half of its IDF. With a lower value, the first occurrence counts more.",
    )
    cover_density: int = switch(
        0, help="1 ranks the chunks that contain every term by PostgreSQL's ts_rank_cd; 0 scores each term."
    )

    @property
    def text_search(self) -> store.TextSearch:
        """How full text is scored, for the statements."""
        weights = (0.1, self.weight_text, self.weight_heading, self.weight_title)
        return store.TextSearch(weights, self.saturation, by_cover=bool(self.cover_density))


@dataclass(frozen=True, slots=True)
class Fulltext(BaseStage, name="fulltext", needs={"terms", "scope"}, gives={"rankings"}):
    """Find the chunks in scope that match the query's terms best.

    In large scopes the BM25 index gives candidates, which PostgreSQL scores. Without it, with quotes, minus or OR, or
    with a filter, PostgreSQL searches alone: for all terms first, then for any of the rare ones. All terms of a
    natural-language question match almost nothing and any of them almost everything, so the second attempt uses the
    rarest terms whose summed document frequency stays under a cap. Neither scores more than `max_matches` chunks; of
    more matches a part is ranked.
    """

    config: FulltextConfig
    index: Reader | None = None  #: The BM25 index, which gives candidates; None searches in PostgreSQL alone.
    text_search_config: str = ""  #: Text search configuration of connections that name none.

    about: ClassVar[About] = About(
        "full text",
        "Finds the chunks in scope that contain the query's terms.",
        group=StageGroup.FIND,
        section="fulltext",
        notes={
            "fulltext_relaxed": "few exact matches: searched for any term",
            "fulltext_capped": "full text ranked in part",
            "fulltext_timeout": "full-text search timed out",
        },
        badges=frozenset({"fulltext_relaxed"}),
    )

    def __call__(self, state: SearchState) -> SearchState:
        """Return the state with this leg's ranking; empty with a note on a timeout."""
        try:
            ranking, notes = self._by_index(state) or self._in_postgresql(state)
        except SearchTimeoutError:
            ranking, notes = (), (Note("fulltext_timeout", "The full-text leg timed out.", degraded=True),)
        return replace(state, rankings={**state.rankings, self.name: ranking}, notes=(*state.notes, *notes))

    def _in_postgresql(self, state: SearchState) -> tuple[Ranking, tuple[Note, ...]]:
        query = state.terms
        if not query.all_terms:
            return (), (Note("fulltext_nothing", "The query has no searchable term."),)
        may_relax = not (query.has_operators or self.config.cover_density)
        # What matches every term matches one of the rare ones too.
        if not may_relax or query.at_most >= self.config.relax_below:
            ranking, capped = self._attempt(query.all_terms, query.at_most, state)
            if query.has_operators:
                return ranking, (Note("fulltext_operators", "Quotes, minus and OR are applied as written."), *capped)
            if not may_relax:
                return ranking, (Note("fulltext_all_terms", "Searched for every term of the query."), *capped)
            if len(ranking) >= self.config.relax_below:
                return ranking, (Note("fulltext_all_terms", "Enough chunks match every term."), *capped)
        rare = rarest(query.terms, cap=self.config.relax_cap)
        if not rare:
            return (), (Note("fulltext_unknown_terms", "No chunk in scope contains a term of the query."),)
        words = ", ".join(term.lexeme for term in rare)
        text = f"Fewer than {self.config.relax_below} chunks match every term; searched for any of: {words}."
        ranking, capped = self._attempt(any_of(rare), sum(term.document_frequency for term in rare), state)
        return ranking, (Note("fulltext_relaxed", text), *capped)

    def _by_index(self, state: SearchState) -> tuple[Ranking, tuple[Note, ...]] | None:
        """Return None where the index cannot be used.

        It may be missing, too far behind or in another language; it does not read operators and filters as full text.
        """
        size, demands = state.terms.corpus_size, state.terms.has_operators or self.config.cover_density or state.filter
        if self.index is None or size < _FEW_CHUNKS or demands:
            return None
        try:
            view = self.index.view()
            if languages_of(state.scope, self.text_search_config) != [view.language]:
                return None
            query = Composer(view, question_of(state, _AS_BM25, self.text_search_config)).strict
            if query is None:
                return None
            ranking = fulltext_by_index(
                query,
                view=view,
                terms=state.terms.terms,
                scope=state.scope,
                search=self.config.text_search,
                depth=self.config.depth,
                timeout_seconds=state.deadline.leg_seconds,
            )
        except Bm25UnavailableError:
            return None
        return ranking, (Note(BY_INDEX, f"Scored the best candidates of the BM25 index, {size:,} chunks in scope."),)

    def _attempt(self, match: str, at_most: int, state: SearchState) -> tuple[Ranking, tuple[Note, ...]]:
        if not at_most:
            return (), ()
        limit, terms = self.config.max_matches, state.terms
        is_exact = len(terms.terms) == 1
        is_too_common = (is_exact or terms.has_operators) and at_most > (1 if is_exact else _TOO_COMMON) * limit
        search = partial(
            store.fulltext,
            match,
            terms=terms.terms,
            scope=state.scope,
            search=self.config.text_search,
            depth=self.config.depth,
            limit=limit,
            request_filter=state.filter,
        )
        if state.filter.documents or not is_too_common:
            reach = store.reach_of(chunks=terms.corpus_size, matches=at_most)
            found = search(reach=reach, timeout_seconds=state.deadline.leg_seconds)
            if found.scored <= limit:
                return found.ranking, ()
        share = min(1.0, limit / at_most)
        found = search(share=share, timeout_seconds=state.deadline.leg_seconds)
        text = (
            f"More than {limit:,} chunks match. Ranked: all matches in title or headings,"
            f" and matches in {share:.1%} of the documents."
        )
        return found.ranking, (Note("fulltext_capped", text),)
