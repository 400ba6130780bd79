"""Linking names in the question to documents, while the legs search."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType
from typing import ClassVar, Final
from uuid import UUID

from corecube.errors import CoreCubeError
from retrieval.encoders import Encoder
from retrieval.encoders.model_calls import ModelCalls
from retrieval.encoders.vector_cache import QueryCache
from retrieval.engine.about import About, BaseStage, StageGroup
from retrieval.engine.state import Note, SearchState
from retrieval.engine.types import Vector
from retrieval.errors import EncoderError, SearchTimeoutError
from retrieval.graph.question import KnownName, NamedDocument, named_in, question_keys, without
from retrieval.index import graph
from retrieval.presets.helix.expansion import GraphConfig
from retrieval.stages.analyze import languages_of
from retrieval.stages.embed import query_vector

_NONE: Final[Mapping[str, bool]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class QuestionNames:
    """Names in scope that a question's words may be, and the vector of the question without them."""

    known: Sequence[KnownName] = ()
    is_cut: bool = False  #: More documents bear one of the names than were read.
    #: Whether the names, by key, occur in too many chunks to mean one document.
    common: Mapping[str, bool] = field(default_factory=dict)
    rest: str = ""  #: The question less its names; empty where it has none, or is nothing else.
    vector: Vector | None = None  #: The rest's unit vector; None where there is no rest, or the model failed.


@dataclass(frozen=True, slots=True)
class LinkEntities(BaseStage, name="names", needs={"query", "terms", "scope"}, gives={"asked"}, optional=True):
    """Look up names of documents in the question, and embed the rest; `expand` does what is missing."""

    config: GraphConfig
    encoder: Encoder
    text_search_config: str  #: Text search configuration of connections that name none.
    cache: QueryCache | None = None
    calls: ModelCalls = field(default_factory=ModelCalls)

    about: ClassVar[About] = About(
        "names",
        "Looks up document names in the question while the legs search, and embeds the remaining text.",
        group=StageGroup.FIND,
        unit="",
    )

    def __call__(self, state: SearchState) -> SearchState:
        """Return the state with the names in the question; without names and with a note on a failure."""
        try:
            names = state.prefetched(self.name, partial(self.read, state))
            return replace(state, parts=state.parts_with(names))
        except SearchTimeoutError:
            note = Note("names_timeout", "Looking up the names in the question timed out.", degraded=True)
        except CoreCubeError:
            note = Note("names_failed", "The names in the question could not be looked up.", degraded=True)
        return replace(state, parts=state.parts_with(QuestionNames()), notes=(*state.notes, note))

    def read(self, state: SearchState) -> QuestionNames:
        """Return the names in the question; raise SearchTimeoutError, DatabaseUnavailableError."""
        question = state.query.for_models
        names = self.names(state, [])
        named = named_in(question, names.asked, scores={}, stems=stems_of(state))
        try:
            common = self.common(named, state)
        except SearchTimeoutError:
            common = _NONE  # `expand` counts them.
        kept = distinctive(named, common)[: self.config.named]
        rest = without(question, kept) if kept else ""
        try:
            vector = self.encoded(rest, state) if rest else None
        except EncoderError:
            vector = None
        return QuestionNames(names.asked, names.is_cut, common=common, rest=rest, vector=vector)

    def names(self, state: SearchState, found: Sequence[UUID]) -> graph.Names:
        """Return known names that the question may contain, of a few documents each, and those of found documents."""
        keys, seconds = question_keys(state.query.for_models), state.deadline.leg_seconds
        return graph.names(keys, found, scope=state.scope, timeout_seconds=seconds)

    def common(
        self, named: Sequence[NamedDocument], state: SearchState, counted: Mapping[str, bool] = _NONE
    ) -> Mapping[str, bool]:
        """Return whether the names, by key, occur in too many chunks to mean one document; `counted` are known.

        A name that capitals mark is counted as a name, and not at all if it is the only one. Any other is counted as a
        phrase. Raises SearchTimeoutError, DatabaseUnavailableError.
        """
        plain = {it.key: it.known_as or it.name for it in named if not it.is_marked and it.key not in counted}
        marked = [it.key for it in named if it.is_marked and it.key not in counted] if len(named) > 1 else []
        limit = self.config.hub_of(state.terms.corpus_size)
        scope, common = state.scope, set[str]()
        if marked:
            common |= graph.hubs(marked, limit=limit, scope=scope, timeout_seconds=state.deadline.leg_seconds)
        if plain:
            languages, seconds = languages_of(scope, self.text_search_config), state.deadline.leg_seconds
            common |= graph.common_phrases(
                plain, languages=languages, limit=limit, scope=scope, timeout_seconds=seconds
            )
        return {**counted, **{key: key in common for key in (*plain, *marked)}}

    def encoded(self, text: str, state: SearchState) -> Vector:
        """Return the unit vector of a text; raise EncoderError, also on a timeout."""
        return query_vector(text, state, encoder=self.encoder, cache=self.cache, calls=self.calls).vector


def stems_of(state: SearchState) -> list[str]:
    """Return the lexemes that the question is searched with."""
    return [term.lexeme for term in state.terms.terms]


def distinctive(named: Sequence[NamedDocument], common: Mapping[str, bool]) -> list[NamedDocument]:
    """Return the named documents without common names; names that capitals mark stay where no other is left.

    Without a count a name that nothing marks is taken to be common.
    """
    kept = [name for name in named if not common.get(name.key, not name.is_marked)]
    return kept or [name for name in named if name.is_marked]
