"""Retrying a thin pool with fewer filters."""

from dataclasses import dataclass, replace
from typing import ClassVar

from retrieval.engine.about import About, StageGroup
from retrieval.engine.pipeline import Stage, narrowed
from retrieval.engine.state import DropReason, Note, RequestFilter, SearchState
from retrieval.engine.tunables import Tunables, tunable
from retrieval.errors import SearchTimeoutError
from retrieval.presets.consolidated.evidence.phases import run_again
from retrieval.presets.consolidated.evidence.recovery import marked_beyond
from retrieval.presets.consolidated.evidence.section_state import SectionStage, SectionState


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryConfig(Tunables, label="Retry"):
    """Repeated search without the section's filters and the request's document limit."""

    below: int = tunable(
        3,
        low=0,
        high=50,
        unit="chunks",
        help="If the pool has fewer chunks, the search is repeated without the section's filters; 0 for never.",
    )
    beyond_from: int = tunable(
        1,
        low=0,
        high=50,
        unit="chunks",
        help="Minimum number of chunks for a retry beyond the requested documents; a smaller pool is left to recovery.",
    )


@dataclass(frozen=True, slots=True)
class RetryChunks(SectionStage, name="chunk_retry", needs={"hits", "section"}):
    """Repeat the primary search without the section's filters, then beyond the requested documents."""

    config: RetryConfig
    primary: tuple[Stage, ...]

    about: ClassVar[About] = About(
        "retried",
        "Repeats the search with fewer filters if the pool has few chunks.",
        group=StageGroup.FIND,
        drops=(
            DropReason.OUTSIDE_WINDOW,
            DropReason.STALE,
            DropReason.ACCESS,
            DropReason.QUALITY,
            DropReason.BELOW_FLOOR,
            DropReason.SOURCE_QUOTA,
        ),
        notes={
            "chunk_retry": "retried without filters",
            "chunk_retry_beyond": "searched beyond the documents",
            "chunk_retry_timeout": "retry timed out",
        },
    )

    def only(self, leg: str) -> "RetryChunks":
        """Return the same with only the leg of this name."""
        return replace(self, primary=narrowed(self.primary, leg))

    def in_section(self, section: SectionState, state: SearchState) -> SearchState:
        """Return the state with the larger of two pools and its filter.

        First the search is repeated without the section's hint and quality filter. If the pool is still sparse and the
        request names documents, hits from other documents are appended, marked as such. By default an empty pool is
        left to the recovery cascade, which begins with that.
        """
        if not state.scope.connection_ids:
            return state
        if len(state.hits) < self.config.below and state.filter != section.request_filter:
            state = self._unfiltered(state, section.request_filter)
        if self.config.beyond_from <= len(state.hits) < self.config.below and state.filter.documents:
            state = self._beyond_documents(state)
        return state

    def _unfiltered(self, state: SearchState, requested: RequestFilter) -> SearchState:
        try:
            again = self._again(state, requested)
        except SearchTimeoutError:
            text = "The retry without the section's filters timed out; the first pool is used."
            return _noted(state, state, Note("chunk_retry_timeout", text, degraded=True), found=0)
        before, after = len(state.hits), len(again.hits)
        text = f"Only {before} chunks were found, and no more without the section's filters."
        if after > before:
            text = f"Only {before} chunks were found; {after} without the section's filters."
        return _noted(state, again if after > before else state, Note("chunk_retry", text), found=after)

    def _beyond_documents(self, state: SearchState) -> SearchState:
        documents = state.filter.documents
        try:
            again = self._again(state, replace(state.filter, documents=frozenset()))
        except SearchTimeoutError:
            text = "The search beyond the requested documents timed out; their hits are used."
            return _noted(state, state, Note("chunk_retry_timeout", text, degraded=True), found=0)
        before, beyond = len(state.hits), [it for it in again.hits if it.chunk_id.document_id not in documents]
        if not beyond:
            text = f"Only {before} chunks were found, and none beyond the requested documents."
            return _noted(state, state, Note("chunk_retry", text), found=0)
        hits = (*state.hits, *marked_beyond(tuple(beyond), ()))
        chunk_ids = {hit.chunk_id for hit in hits}
        new = (drop for drop in again.drops[len(state.drops) :] if drop.chunk_id not in chunk_ids)
        text = f"Only {before} chunks were found; {len(beyond)} beyond the requested documents."
        wider = replace(again, hits=hits, drops=(*state.drops, *new))
        return _noted(state, wider, Note("chunk_retry_beyond", text, degraded=True), found=len(beyond))

    def _again(self, state: SearchState, kept: RequestFilter) -> SearchState:
        return run_again(self.primary, replace(state, filter=kept), within=self.name)


def _noted(before: SearchState, state: SearchState, note: Note, *, found: int) -> SearchState:
    event = {"event": "chunk_retry", "before": len(before.hits), "found": found, "taken": state is not before}
    return replace(state, notes=(*state.notes, note), events=(*state.events, event))
