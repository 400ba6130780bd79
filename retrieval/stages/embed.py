"""Embedding the query."""

from dataclasses import dataclass, field, replace
from typing import ClassVar, Self

from retrieval.encoders import Encoder
from retrieval.encoders.model_calls import ModelCalls, model_key
from retrieval.encoders.vector_cache import CachedVector, QueryCache
from retrieval.engine.about import About, BaseStage, StageGroup
from retrieval.engine.state import Note, SearchState
from retrieval.errors import EncoderError, EncoderTimeoutError
from retrieval.stages.prefetch import Prefetch, PrefetchTerms


@dataclass(frozen=True, slots=True)
class Embed(BaseStage, name="embed", needs={"query", "scope"}, gives={"vector"}):
    """Embed the query, without its search syntax, with the model that embedded the chunks."""

    encoder: Encoder | None  #: None where the model is a remote service and the preset uses none.
    cache: QueryCache | None = None
    ahead: tuple[Prefetch, ...] = ()  #: Runs while the query is embedded.
    calls: ModelCalls = field(default_factory=ModelCalls)

    about: ClassVar[About] = About(
        "embedded",
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

    def only(self, leg: str) -> Self:
        """Return the same; no other leg is prefetched."""
        return replace(self, ahead=tuple(it.only(leg) if isinstance(it, PrefetchTerms) else it for it in self.ahead))

    def __call__(self, state: SearchState) -> SearchState:
        """Return the state with the query's unit vector; with a note instead if the model fails or is late."""
        if self.encoder is None:
            text = "The embedding model is a remote service, which this preset does not use; only text was searched."
            return state.noted(Note("embed_remote", text, degraded=True))
        for work in self.ahead:
            state = work.begun(state)
        text = state.query.for_models
        try:
            found = query_vector(text, state, encoder=self.encoder, cache=self.cache, calls=self.calls)
        except EncoderTimeoutError:
            message = "The embedding model did not answer in time; only full text was searched."
            note = Note("embed_timeout", message, degraded=True)
        except EncoderError:
            note = Note("embed_failed", "The query could not be embedded; only full text was searched.", degraded=True)
        else:
            notes = (Note("embed_cached", "The vector of this query was cached."),) if found.was_cached else ()
            return replace(state, vector=found.vector).noted(*notes)
        return state.noted(note)


def query_vector(
    text: str, state: SearchState, *, encoder: Encoder, cache: QueryCache | None, calls: ModelCalls
) -> CachedVector:
    """Return the unit vector of a text, cached even if it is late; raise EncoderError, also on a timeout."""

    def work() -> CachedVector:
        if cache is None:
            return CachedVector(encoder.encode_query(text), was_cached=False)
        return cache.encode(text, encoder=encoder, principal=state.scope.principal)

    known = cache.get(text, encoder=encoder, principal=state.scope.principal) if cache else None
    return known or calls.within(state.deadline.embed_seconds, work, model=model_key(encoder))
