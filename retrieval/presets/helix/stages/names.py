"""Linking names in the question to documents, while the legs search."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import ClassVar
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
from retrieval.graph.spans import key_of
from retrieval.index import graph
from retrieval.presets.helix.expansion import GraphConfig
from retrieval.stages.embed import query_vector


@dataclass(frozen=True, slots=True)
class QuestionNames:
    """Names in scope that a question's words may be, and the vector of the question without them."""

    known: Sequence[KnownName] = ()
    is_cut: bool = False  #: More documents bear one of the names than were read.
    #: Keys whose chunks were counted, and those of them that occur in too many to mean one document.
    counted: frozenset[str] = frozenset()
    hubs: frozenset[str] = frozenset()
    rest: str = ""  #: The question less its names; empty where it has none, or is nothing else.
    vector: Vector | None = None  #: The rest's unit vector; None where there is no rest, or the model failed.


@dataclass(frozen=True, slots=True)
class LinkEntities(BaseStage, name="names", needs={"query", "terms", "scope"}, gives={"asked"}, optional=True):
    """Look up names of documents in the question, and embed the rest; `expand` does what is missing."""

    config: GraphConfig
    encoder: Encoder
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
        counted, hubs = self.hubs(named, state)
        kept = without_hubs(named, hubs)[: self.config.named]
        rest = without(question, kept) if kept else ""
        try:
            vector = self.encoded(rest, state) if rest else None
        except EncoderError:
            vector = None
        return QuestionNames(names.asked, names.is_cut, counted=counted, hubs=hubs, rest=rest, vector=vector)

    def names(self, state: SearchState, found: Sequence[UUID]) -> graph.Names:
        """Return known names that the question may contain, of a few documents each, and those of found documents."""
        keys, seconds = question_keys(state.query.for_models), state.deadline.leg_seconds
        return graph.names(keys, found, scope=state.scope, timeout_seconds=seconds)

    def hubs(self, named: Sequence[NamedDocument], state: SearchState) -> tuple[frozenset[str], frozenset[str]]:
        """Return the names' keys, and those of them that occur in many chunks; a single name is not counted."""
        if len(named) <= 1:
            return frozenset(), frozenset()
        keys = [key_of(name.name) for name in named]
        limit = max(self.config.hub_links, int(self.config.hub_share * state.terms.corpus_size))
        found = graph.hubs(keys, limit=limit, scope=state.scope, timeout_seconds=state.deadline.leg_seconds)
        return frozenset(keys), frozenset(found)

    def encoded(self, text: str, state: SearchState) -> Vector:
        """Return the unit vector of a text; raise EncoderError, also on a timeout."""
        return query_vector(text, state, encoder=self.encoder, cache=self.cache, calls=self.calls).vector


def stems_of(state: SearchState) -> list[str]:
    """Return the lexemes that the question is searched with."""
    return [term.lexeme for term in state.terms.terms]


def without_hubs(named: Sequence[NamedDocument], hubs: frozenset[str]) -> list[NamedDocument]:
    """Return the named documents without hubs; unchanged for a single one, or where every name is a hub."""
    kept = [name for name in named if key_of(name.name) not in hubs]
    return kept if kept and len(named) > 1 else list(named)
