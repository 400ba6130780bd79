"""Reading the pool's chunks, and both signals for each of them."""

from collections.abc import Container
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final

from corecube.errors import DatabaseUnavailableError
from retrieval.engine.about import About, StageGroup
from retrieval.engine.state import Drop, DropReason, Note, SearchState
from retrieval.engine.types import ChunkId, Hit, Ranking
from retrieval.index import store
from retrieval.stages.dense import DENSE_TIMEOUT
from retrieval.stages.fulltext import FulltextConfig

#: The signals that completing gives.
_SIGNALS: Final = ("fulltext", "cosine")


def _signals_fact(hit: Hit, config: Any) -> str:  # noqa: ANN401, ARG001 -- one signature for all stages
    names = {"cosine": "cosine", "fulltext": "full text"}
    return ", ".join(f"{label} {hit.signals[name]:.3f}" for name, label in names.items() if name in hit.signals)


@dataclass(frozen=True, slots=True)
class Complete:
    """Read every pooled chunk once, with its cosine and full-text score, whichever leg found it.

    The blend compares like with like only when no hit lacks a signal because one leg did not reach it.
    """

    config: FulltextConfig
    index: store.VectorIndex
    #: Whether the hits get their vectors, for a stage that compares them with each other.
    with_vectors: bool = False

    name: ClassVar[str] = "complete"
    needs: ClassVar[frozenset[str]] = frozenset({"hits", "vector", "terms", "scope"})
    gives: ClassVar[frozenset[str]] = frozenset({"facts"})
    optional: ClassVar[bool] = False
    about: ClassVar[About] = About(
        "read",
        "Reads every pooled chunk once, with both signals, whichever leg found it.",
        group=StageGroup.MERGE,
        section="fulltext",
        drops=(DropReason.STALE,),
        badges=frozenset({"stale_hits"}),
        fact=_signals_fact,
    )

    def __call__(self, state: SearchState) -> SearchState:
        """Return the state with completed hits; those that are gone from the store are left out."""
        if not state.hits:
            return state
        read = {hit.chunk_id: hit for hit in _read_ahead(state)}
        read |= {hit.chunk_id: hit for hit in self.read(state, without=read)}
        hits = tuple(_joined(hit, read[hit.chunk_id]) for hit in state.hits if hit.chunk_id in read)
        # Gone, out of scope, or found by a leg that knows no filter: which of these is nobody's to know.
        text = "left out by the filter, or gone from the store" if state.filter else "gone from the store"
        drops = tuple(Drop(hit.chunk_id, DropReason.STALE, text) for hit in state.hits if hit.chunk_id not in read)
        notes = (Note("stale_hits", f"{len(drops)} hits were {text}."),) if drops else ()
        return replace(state, hits=hits, drops=(*state.drops, *drops), notes=(*state.notes, *notes))

    def read(self, state: SearchState, *, without: Container[ChunkId] = ()) -> Ranking:
        """Return the pool's hits completed, those that are gone and those of `without` left out."""
        unread = tuple(hit for hit in state.hits if hit.chunk_id not in without)
        if not unread:
            return ()
        return store.complete(
            unread,
            vector=state.vector,
            index=self.index_for(state),
            terms=state.terms.terms,
            scope=state.scope,
            search=self.config.text_search,
            timeout_seconds=state.deadline.read_seconds,
            kept=state.filter,
            with_vectors=self.with_vectors,
        )

    def index_for(self, state: SearchState) -> store.VectorIndex | None:
        """Return whose vectors are read; None for none."""
        del state
        return self.index


@dataclass(frozen=True, slots=True)
class CompleteInTime(Complete):
    """The same, but without cosines where the vectors were not had in time: they would take the rest of it too."""

    def index_for(self, state: SearchState) -> store.VectorIndex | None:
        """Return None where the leg of vectors ran out of time."""
        return None if DENSE_TIMEOUT in state.degraded else self.index


@dataclass(frozen=True, slots=True)
class PrefetchPool:
    """Completes the pool on another thread, for a stage that brings few hits into it and can work meanwhile."""

    complete: Complete
    executor: Executor

    def begun(self, state: SearchState) -> SearchState:
        """Return the state with the pool as it is now being read."""
        reading = self.executor.submit(self.complete.read, state)
        return replace(state, prefetch={**state.prefetch, self.complete.name: reading.result})


def _read_ahead(state: SearchState) -> Ranking:
    try:
        return state.prefetched(Complete.name, tuple)
    except DatabaseUnavailableError:
        # The other thread may have found no connection free; this one has one.
        return ()


def _joined(hit: Hit, read: Hit) -> Hit:
    """Return a hit as the stages left it, with what was read of its chunk."""
    signals = {name: read.signals[name] for name in _SIGNALS if name in read.signals}
    return hit.known(read.chunk, {**hit.signals, **signals}, read.matches)
