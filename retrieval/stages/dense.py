"""The vector leg."""

from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar, Final

from retrieval.engine.about import About, BaseStage, StageGroup
from retrieval.engine.state import Note, SearchState
from retrieval.engine.tunables import Tunables, costly
from retrieval.engine.types import Ranking, Vector
from retrieval.errors import SearchTimeoutError, VectorFilesUnavailableError
from retrieval.index import store
from retrieval.index.vectors.reader import Reader
from retrieval.index.vectors.search import OpenFiles, dense_files, opened

DENSE_TIMEOUT: Final = "dense_timeout"  #: The code of the note when the leg times out.
FILES: Final = "dense_files"  #: The code of the note when the vector files were searched, and what is prefetched.
_FEW_CHUNKS: Final = 2_500  #: A scope with fewer chunks is compared faster in PostgreSQL than in the vector files.
_FEW_DOCUMENTS: Final = 500  #: Up to this many documents an exact scan is faster than the index.


@dataclass(frozen=True, slots=True, kw_only=True)
class DenseConfig(Tunables, label="Vector search"):
    """Settings of the vector leg."""

    depth: int = costly(100, low=1, high=1000, unit="hits", help="Hits read from the vector leg.")
    files_below: int = costly(
        300_000,
        low=0,
        high=10_000_000,
        unit="chunks",
        help="A scope of 2,500 chunks or more, but fewer than this, is scanned exactly in this machine's vector files.",
    )
    exact_below: int = costly(
        50_000,
        low=0,
        high=1_000_000,
        unit="chunks",
        help="Without vector files, a scope with fewer chunks is scanned exactly in PostgreSQL; a larger one goes"
        " through the HNSW index.",
    )
    ef_search: int = costly(
        200,
        low=10,
        high=1000,
        unit="candidates",
        help="Size of HNSW's candidate list (ef_search); larger finds more and takes longer.",
    )
    oversample: float = costly(
        2.0, low=1.0, high=10.0, help="Candidates that the HNSW scan finds in scope for each requested hit."
    )


@dataclass(frozen=True, slots=True)
class Dense(BaseStage, name="dense", needs={"vector", "terms", "scope"}, gives={"rankings"}):
    """Find the chunks in scope nearest to the query's vector."""

    config: DenseConfig
    index: store.VectorIndex
    #: Share of the leg's time that each statement may take, so that the text hits can still be read.
    share: float = 1.0
    stored_as: str = ""  #: The scan that the preset is for; another index is searched with a note. Empty for any.
    files: Reader | None = None  #: The vector files; None searches in PostgreSQL alone.

    about: ClassVar[About] = About(
        "vector",
        "Finds the chunks in scope nearest to the query's vector.",
        group=StageGroup.FIND,
        section="dense",
        notes={"dense_timeout": "vector search timed out"},
    )

    def __call__(self, state: SearchState) -> SearchState:
        """Return the state with this leg's ranking; empty without a vector, and with a note on a timeout."""
        if state.vector is None:
            return replace(state, rankings={**state.rankings, self.name: ()})
        try:
            ranking, note = self._search(state.vector, state)
        except SearchTimeoutError:
            ranking, note = (), Note(DENSE_TIMEOUT, "The vector leg timed out.", degraded=True)
        state = replace(state, rankings={**state.rankings, self.name: ranking}, notes=(*state.notes, note))
        if note.code != FILES and self.stored_as not in {"", self.index.scan}:
            text = f"The document stores vectors as {self.stored_as}; this index is {self.index.scan}."
            state = state.noted(Note("dense_storage", text))
        return state

    def _search(self, vector: Vector, state: SearchState) -> tuple[Ranking, Note]:
        size = state.terms.corpus_size
        if found := self._by_files(vector, state):
            return found
        if size < self.config.exact_below:
            return self._exact(vector, state), Note("dense_exact", f"Compared all {size:,} chunks in scope.")
        if 0 < len(state.filter.documents) <= _FEW_DOCUMENTS:
            return self._exact(vector, state), Note("dense_exact", "Compared all chunks of the requested documents.")
        ranking = store.dense_hnsw(
            vector,
            scope=state.scope,
            index=self.index,
            depth=self.config.depth,
            oversample=self.config.oversample,
            ef_search=self.config.ef_search,
            timeout_seconds=self.share * state.deadline.leg_seconds,
            request_filter=state.filter,
        )
        if len(ranking) >= min(self.config.depth, size):
            scan = "" if self.index.scan == "halfvec" else f" by {self.index.scan}, rescored with full vectors"
            return ranking, Note("dense_hnsw", f"HNSW index{scan}, {size:,} chunks in scope.")
        # The scan ends after a number of vectors, whether or not enough of them were in scope.
        text = f"The HNSW index returned only {len(ranking)} hits in scope; compared all {size:,} chunks."
        return self._exact(vector, state), Note("dense_exact", text)

    def _by_files(self, vector: Vector, state: SearchState) -> tuple[Ranking, Note] | None:
        """Return None where the files cannot be used: they are not there or behind, or know nothing of the filter."""
        if state.filter or not (files := state.prefetched(FILES, partial(self.open_files, state))):
            return None
        try:
            ranking = dense_files(
                vector,
                files=files,
                scope=state.scope,
                index=self.index,
                depth=self.config.depth,
                timeout_seconds=self.share * state.deadline.leg_seconds,
            )
        except VectorFilesUnavailableError:
            return None
        size = files.view.count(state.scope.connection_ids)
        return ranking, Note(FILES, f"Compared all {size:,} chunks in scope in the vector files.")

    def open_files(self, state: SearchState) -> OpenFiles | None:
        """Return the vector files for this scope; None where another way is faster, or they cannot be used."""
        if self.files is None or state.filter or state.terms.corpus_size < _FEW_CHUNKS:
            return None
        seconds = self.share * state.deadline.leg_seconds
        try:
            view = self.files.view()
            if view.count(state.scope.connection_ids) >= self.config.files_below:
                return None
            return opened(view, scope=state.scope, index=self.index, timeout_seconds=seconds)
        except VectorFilesUnavailableError:
            return None

    def _exact(self, vector: Vector, state: SearchState) -> Ranking:
        return store.dense_exact(
            vector,
            scope=state.scope,
            index=self.index,
            depth=self.config.depth,
            timeout_seconds=self.share * state.deadline.leg_seconds,
            request_filter=state.filter,
        )
