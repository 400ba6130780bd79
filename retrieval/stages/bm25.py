"""Settings of the BM25 leg."""

from dataclasses import dataclass, replace
from typing import ClassVar

from retrieval.engine.about import About, BaseStage, StageGroup
from retrieval.engine.pipeline import Stage
from retrieval.engine.query import Clause, clauses_of
from retrieval.engine.state import Note, SearchState
from retrieval.engine.tunables import Tunables, costly, tunable
from retrieval.engine.types import Hit, Ranking, ScoreType
from retrieval.errors import Bm25UnavailableError
from retrieval.index.bm25 import schema
from retrieval.index.bm25.question import Composer, Question
from retrieval.index.bm25.reader import Reader
from retrieval.stages.analyze import languages_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Bm25Config(Tunables, label="BM25 search"):
    """Settings of the BM25 leg."""

    depth: int = costly(100, low=1, high=1000, unit="hits", help="Hits read from the BM25 leg.")
    weight_title: float = tunable(0.4, low=0.0, high=10.0, help="Additional weight of a match in the title.")
    weight_heading: float = tunable(0.3, low=0.0, high=10.0, help="Additional weight of a match in the heading path.")
    weight_text: float = tunable(
        1.0, low=0.0, high=10.0, help="Weight of a match in the chunk: its text, or title and headings."
    )
    weight_questions: float = tunable(
        0.3, low=0.0, high=10.0, help="Weight of a match in the questions that a model wrote for the chunk."
    )
    weight_exact: float = tunable(
        0.5, low=0.0, high=10.0, help="Weight of a name, path or version that matches as written."
    )


@dataclass(frozen=True, slots=True)
class Bm25(BaseStage, name="bm25", needs={"terms", "scope"}, gives={"rankings"}):
    """Find the chunks in scope with the highest BM25 scores, in the BM25 index.

    Plain words are alternatives. A quoted phrase must match, a word after a minus must not, and one of the words joined
    by OR must. With a phrase and plain words, chunks without the phrase rank after those with it.
    Scores use statistics of the scope, except the average field lengths, which are those of the entire index. Viewers
    see them rounded (`retrieval.search.service`).
    """

    config: Bm25Config
    index: Reader | None  #: None in a process without an index.
    text_search_config: str  #: Text search configuration of connections that name none.
    #: Searches instead where no index is readable: a search without words misses names, paths and errors.
    substitute: Stage | None = None
    #: Whether it does so only without a query vector, when no other leg can search.
    only_without_vector: bool = False

    about: ClassVar[About] = About(
        "BM25",
        "Finds the chunks in scope with the highest BM25 scores. Names and paths also match as written.",
        group=StageGroup.FIND,
        section="bm25",
        notes={
            "bm25_substituted": "full text instead of BM25",
            "bm25_unavailable": "no BM25 index",
            "bm25_timeout": "BM25 search timed out",
            "bm25_relaxed": "phrase optional",
        },
    )

    def __call__(self, state: SearchState) -> SearchState:
        """Return the state with this leg's ranking, and a note where another leg, or none, searched instead."""
        if not state.scope.connection_ids:
            return replace(state, rankings={**state.rankings, self.name: ()})
        try:
            ranking, note = self._search(state)
        except Bm25UnavailableError:
            if self.substitute is not None and (state.vector is None or not self.only_without_vector):
                text = "No BM25 index is available; it may be building. PostgreSQL full text searched instead."
                found = self.substitute(state.noted(Note("bm25_substituted", text, degraded=True)))
                return replace(found, rankings={**state.rankings, self.name: found.rankings[self.substitute.name]})
            text = "No BM25 index is available; it may be building. Only the other legs searched."
            ranking, note = (), Note("bm25_unavailable", text, degraded=True)
        return replace(state, rankings={**state.rankings, self.name: ranking}, notes=(*state.notes, note))

    def _search(self, state: SearchState) -> tuple[Ranking, Note]:
        if self.index is None:
            raise Bm25UnavailableError
        view = self.index.view()
        composer = Composer(view, question_of(state, self.config, self.text_search_config))
        if composer.strict is None:
            return (), Note("bm25_nothing", "The query has no searchable term.")
        # A search in the index cannot be interrupted; it takes milliseconds.
        if not state.deadline.leg_seconds:
            return (), Note("bm25_timeout", "The BM25 leg timed out.", degraded=True)
        found = view.best(composer.strict, self.config.depth)
        note = Note("bm25", f"BM25 index, {state.terms.corpus_size:,} chunks in scope.")
        if composer.relaxed is not None and len(found) < self.config.depth:
            note = Note("bm25_relaxed", f"{len(found):,} chunks match the phrase; others rank after them.")
            found += [it for it in view.best(composer.relaxed, self.config.depth) if it not in found]
        best = found[: self.config.depth]
        return tuple(Hit(it, score, ScoreType.BM25, signals={"bm25": score}) for it, score in best), note


def question_of(state: SearchState, config: Bm25Config, text_search_config: str) -> Question:
    """Return the query, its scope and the statistics of its terms for the BM25 index.

    `text_search_config` is that of connections that name none.
    """
    return Question(
        clauses=[*clauses_of(state.query), *map(Clause, sorted(state.terms.compounds))],
        connection_ids=state.scope.connection_ids,
        languages=frozenset(languages_of(state.scope, text_search_config)),
        frequencies={schema.folded(term.lexeme): term.document_frequency for term in state.terms.terms},
        corpus_size=state.terms.corpus_size,
        weights={
            schema.BODY: config.weight_text,
            schema.TITLE: config.weight_title,
            schema.HEADING: config.weight_heading,
            schema.QUESTIONS: config.weight_questions,
            schema.PLAIN: config.weight_text,
            schema.EXACT: config.weight_exact,
        },
        request_filter=state.filter,
    )
