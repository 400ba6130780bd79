"""Asking again without the section's own filters."""

from dataclasses import dataclass, replace
from typing import ClassVar

from retrieval.consolidated_config import RetryConfig
from retrieval.errors import SearchTimeoutError
from retrieval.evidence.phases import run_again
from retrieval.pipeline import Stage, narrowed
from retrieval.types import Note, SearchState


@dataclass(frozen=True, slots=True)
class RetryChunks:
    """Repeat the primary search without hint and quality filter where the pool is sparse; documents stay."""

    config: RetryConfig
    primary: tuple[Stage, ...]

    name: ClassVar[str] = "chunk_retry"
    needs: ClassVar[frozenset[str]] = frozenset({"hits", "section"})
    gives: ClassVar[frozenset[str]] = frozenset()
    optional: ClassVar[bool] = False

    def only(self, leg: str) -> "RetryChunks":
        """Return the same with only the leg of this name."""
        return replace(self, primary=narrowed(self.primary, leg))

    def __call__(self, state: SearchState) -> SearchState:
        """Return the state with the larger pool of the two, and with the filter that it was found by."""
        if not self._is_worth_it(state):
            return state
        try:
            again = self._again(state)
        except SearchTimeoutError:
            text = "Asking again without the section's own filters took too long; the first pool stays."
            return _told(state, state, Note("chunk_retry_timeout", text, degraded=True), found=0)
        before, after = len(state.hits), len(again.hits)
        if after > before:
            text = f"Only {before} chunks were found; {after} without the section's own filters."
            return _told(state, again, Note("chunk_retry", text), found=after)
        text = f"Only {before} chunks were found, and no more without the section's own filters."
        return _told(state, state, Note("chunk_retry", text), found=after)

    def _is_worth_it(self, state: SearchState) -> bool:
        """Return whether the pool is sparse, and the section left something out that the request did not."""
        if state.section is None or not state.scope.connection_ids:
            return False
        return len(state.hits) < self.config.below and state.filter != state.section.asked_filter

    def _again(self, state: SearchState) -> SearchState:
        assert state.section is not None  # noqa: S101 -- looked at before
        return run_again(self.primary, replace(state, filter=state.section.asked_filter), within=self.name)


def _told(before: SearchState, state: SearchState, note: Note, *, found: int) -> SearchState:
    event = {"event": "chunk_retry", "before": len(before.hits), "found": found, "taken": state is not before}
    return replace(state, notes=(*state.notes, note), events=(*state.events, event))
