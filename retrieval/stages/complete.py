"""Completing the pool: the chunks, and both signals of each."""

from collections.abc import Collection
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from typing import ClassVar

from retrieval.engine.about import About, BaseStage, StageGroup
from retrieval.engine.state import Drop, DropReason, Note, SearchState
from retrieval.engine.types import ChunkId, Ranking
from retrieval.index import store
from retrieval.stages.dense import DENSE_TIMEOUT
from retrieval.stages.fulltext import FulltextConfig


@dataclass(frozen=True, slots=True)
class Complete(BaseStage, name="complete", needs={"hits", "vector", "terms", "scope"}, gives={"facts"}):
    """Read every pooled chunk once, with its cosine and full-text score, whichever leg found it.

    The blend compares like with like only when no hit lacks a signal because one leg did not reach it.
    """

    config: FulltextConfig
    index: store.VectorIndex
    with_vectors: bool = False  #: Whether to read the vectors too, for a stage that compares hits with each other.
    #: Whether no cosines are read where the vector leg timed out: reading vectors would use up the time.
    in_time: bool = False

    about: ClassVar[About] = About(
        "completed",
        "Computes both scores of every chunk in the pool, also if only one leg found it.",
        group=StageGroup.MERGE,
        section="fulltext",
        drops=(DropReason.STALE,),
        badges=frozenset({"stale_hits"}),
        fact=lambda hit, _: ", ".join(
            f"{label} {hit.signals[name]:.3f}"
            for name, label in (("cosine", "cosine"), ("fulltext", "full text"))
            if name in hit.signals
        ),
    )

    def __call__(self, state: SearchState) -> SearchState:
        """Return the state with completed hits, without those that are no longer in the store."""
        if not state.hits:
            return state
        found: Ranking = state.prefetched(self.name, tuple)
        ahead = {hit.chunk_id: hit for hit in found}
        hits = self.read(state, without=ahead)
        if ahead:
            # What was read ahead lacks what was learnt meanwhile.
            known = ahead | {hit.chunk_id: hit for hit in hits}
            pairs = ((hit, known[hit.chunk_id]) for hit in state.hits if hit.chunk_id in known)
            hits = tuple(
                hit.known(
                    it.chunk,
                    {**hit.signals, **{k: it.signals[k] for k in ("fulltext", "cosine") if k in it.signals}},
                    it.matches,
                )
                for hit, it in pairs
            )
        # Deleted, out of scope, or found by a leg that ignores the filter; which of these is not disclosed.
        text = "filtered out, or no longer in the store" if state.filter else "no longer in the store"
        drops: tuple[Drop, ...] = ()
        if len(hits) < len(state.hits):
            kept = {hit.chunk_id for hit in hits}
            drops = tuple(Drop(hit.chunk_id, DropReason.STALE, text) for hit in state.hits if hit.chunk_id not in kept)
        notes = (Note("stale_hits", f"{len(drops)} hits were {text}."),) if drops else ()
        return replace(state, hits=hits, drops=(*state.drops, *drops)).noted(*notes)

    def read(self, state: SearchState, *, without: Collection[ChunkId] = ()) -> Ranking:
        """Return the completed hits of the pool, except deleted ones and those of `without`."""
        unread = tuple(hit for hit in state.hits if hit.chunk_id not in without) if without else tuple(state.hits)
        if not unread:
            return ()
        return store.complete(
            unread,
            vector=state.vector,
            index=None if self.in_time and DENSE_TIMEOUT in state.degraded else self.index,
            terms=state.terms.terms,
            scope=state.scope,
            search=self.config.text_search,
            match=state.terms.all_terms,
            timeout_seconds=state.deadline.read_seconds,
            request_filter=state.filter,
            with_vectors=self.with_vectors,
        )


@dataclass(frozen=True, slots=True)
class PrefetchPool:
    """Completes the pool on another thread, during a stage that adds few hits to it."""

    complete: Complete
    executor: Executor

    def begun(self, state: SearchState) -> SearchState:
        """Return the state while another thread reads the pool."""
        reading = self.executor.submit(self.complete.read, state)
        return replace(state, prefetch={**state.prefetch, self.complete.name: reading.result})
