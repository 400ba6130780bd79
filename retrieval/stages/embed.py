"""Turning the query into a vector."""

from dataclasses import dataclass, field, replace
from typing import ClassVar, Protocol

from retrieval.encoders import Encoder
from retrieval.encoders.model_calls import ModelCalls, model_key
from retrieval.encoders.query_cache import CachedVector, QueryCache
from retrieval.engine.about import About, StageGroup
from retrieval.engine.state import Note, SearchState
from retrieval.errors import EncoderError, EncoderTimeoutError


class Ahead(Protocol):
    """Work for another thread, which a later stage waits for."""

    def begun(self, state: SearchState) -> SearchState:
        """Return the state with the work begun."""
        ...


@dataclass(frozen=True, slots=True)
class Embed:
    """Embed the query, without its search syntax, with the model that embedded the chunks."""

    #: None where the model is at a service and the preset asks none.
    encoder: Encoder | None
    #: None encodes every query.
    cache: QueryCache | None = None
    #: What works meanwhile.
    ahead: Ahead | None = None
    calls: ModelCalls = field(default_factory=ModelCalls)

    name: ClassVar[str] = "embed"
    needs: ClassVar[frozenset[str]] = frozenset({"query", "scope"})
    gives: ClassVar[frozenset[str]] = frozenset({"vector"})
    optional: ClassVar[bool] = False
    about: ClassVar[About] = About(
        "vector",
        "Turns the query into a vector with the model that embedded the chunks.",
        group=StageGroup.QUESTION,
        unit="dimensions",
        left=lambda state: None if state.vector is None else state.vector.size,
        notes={
            "embed_cached": "cached query vector",
            "embed_remote": "no vector search",
            "embed_failed": "query not embedded",
            "embed_timeout": "query embedding timed out",
        },
    )

    def __call__(self, state: SearchState) -> SearchState:
        """Return the state with the query's unit vector; without one, and saying so, if the model fails or is late."""
        if self.encoder is None:
            text = "The embedding model is at a service, which this preset does not ask; only words were searched."
            return replace(state, notes=(*state.notes, Note("embed_remote", text, degraded=True)))
        state = self.ahead.begun(state) if self.ahead else state
        try:
            return self._embedded(state, self.encoder)
        except EncoderTimeoutError:
            text = "The embedding model did not answer in time; only full text was searched."
            note = Note("embed_timeout", text, degraded=True)
        except EncoderError:
            note = Note("embed_failed", "The query could not be embedded; only full text was searched.", degraded=True)
        return replace(state, notes=(*state.notes, note))

    def _embedded(self, state: SearchState, encoder: Encoder) -> SearchState:
        text = state.query.plain_text or state.query.retrieval_text
        found = query_vector(text, state, encoder=encoder, cache=self.cache, calls=self.calls)
        notes = (Note("embed_cached", "You asked this before; its vector was kept."),) if found.was_known else ()
        return replace(state, vector=found.vector, notes=(*state.notes, *notes))


def query_vector(
    text: str, state: SearchState, *, encoder: Encoder, cache: QueryCache | None, calls: ModelCalls
) -> CachedVector:
    """Return the unit vector of a text that is searched for; raise EncoderError, also where the model takes too long.

    A vector that comes too late is kept for the next time.
    """

    def work() -> CachedVector:
        if cache is None:
            return CachedVector(encoder.encode_query(text), was_known=False)
        return cache.encode(text, encoder=encoder, principal=state.scope.principal)

    known = cache.known(text, encoder=encoder, principal=state.scope.principal) if cache else None
    return known or calls.within(state.deadline.embed_seconds, work, model=model_key(encoder))
