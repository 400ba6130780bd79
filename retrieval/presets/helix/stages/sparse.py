"""The leg of learned sparse vectors."""

from dataclasses import dataclass, field, replace
from functools import partial
from typing import ClassVar

from retrieval.encoders.model_calls import ModelCalls, model_key
from retrieval.encoders.sparse_encoder import SparseModel
from retrieval.engine.about import About, BaseStage, StageGroup
from retrieval.engine.state import Note, SearchState
from retrieval.engine.tunables import Tunables, costly
from retrieval.engine.types import Ranking
from retrieval.errors import EncoderError, EncoderTimeoutError, SearchTimeoutError
from retrieval.index.encodings import SparseLook, sparse_exact, sparse_hnsw


@dataclass(frozen=True, slots=True, kw_only=True)
class SparseConfig(Tunables, label="Sparse search"):
    """The leg for learned sparse vectors, if a sparse model is configured."""

    depth: int = costly(100, low=0, high=500, unit="hits", help="Hits read from the sparse leg; 0 turns it off.")
    exact_below: int = costly(
        20_000,
        low=0,
        high=1_000_000,
        unit="chunks",
        help="A scope with fewer chunks is compared exactly; a larger one goes through the HNSW index.",
    )
    ef_search: int = costly(
        200, low=10, high=1000, unit="candidates", help="Size of HNSW's candidate list (ef_search); larger finds more."
    )


@dataclass(frozen=True, slots=True)
class Sparse(BaseStage, name="sparse", needs={"query", "terms", "scope"}, gives={"rankings"}):
    """Find the chunks in scope with the nearest learned sparse vectors, by inner product (SPLADE)."""

    config: SparseConfig
    model: SparseModel
    calls: ModelCalls = field(default_factory=ModelCalls)

    about: ClassVar[About] = About(
        "sparse",
        "Finds the chunks in scope nearest to the query's sparse vector (SPLADE).",
        group=StageGroup.FIND,
        section="sparse",
        notes={
            "sparse_unavailable": "no sparse model",
            "sparse_failed": "sparse model failed",
            "sparse_timeout": "sparse search timed out",
        },
    )

    def __call__(self, state: SearchState) -> SearchState:
        """Return the state with this leg's ranking; empty with a note without its model or on a timeout."""
        try:
            ranking, note = self._search(state)
        except SearchTimeoutError:
            ranking, note = (), Note("sparse_timeout", "The sparse leg timed out.", degraded=True)
        except EncoderTimeoutError:
            text = "The sparse model did not answer in time; the other legs searched alone."
            ranking, note = (), Note("sparse_timeout", text, degraded=True)
        except EncoderError:
            text = "The sparse model failed; the other legs searched alone."
            ranking, note = (), Note("sparse_failed", text, degraded=True)
        return replace(state, rankings={**state.rankings, self.name: ranking}, notes=(*state.notes, note))

    def _search(self, state: SearchState) -> tuple[Ranking, Note]:
        if self.model.encoder is None:
            return (), Note("sparse_unavailable", self.model.problem, degraded=True)
        work = partial(self.model.encoder.encode_query, state.query.for_models)
        key = model_key(self.model.encoder)
        vector = self.calls.within(state.deadline.embed_seconds, work, model=key)
        if not vector.places:
            return (), Note("sparse_nothing", "The sparse model returned no terms for the query.")
        look = SparseLook(
            vector,
            scope=state.scope,
            model_key=self.model.key,
            depth=self.config.depth,
            timeout_seconds=state.deadline.leg_seconds,
            request_filter=state.filter,
        )
        size = state.terms.corpus_size
        if size < self.config.exact_below:
            return sparse_exact(look), Note("sparse_exact", f"{len(vector.places)} terms, compared {size:,} chunks.")
        ranking = sparse_hnsw(look, ef_search=self.config.ef_search)
        return ranking, Note("sparse_hnsw", f"{len(vector.places)} terms, HNSW index, {size:,} chunks in scope.")
