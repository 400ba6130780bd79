"""The searches of the recovery tiers, all within the scope of the search, also in the other embedding indexes."""

import logging
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotInTimeError
from dataclasses import dataclass, field, replace
from functools import cache

from corecube.errors import CoreCubeError
from retrieval.encoders import Encoder, embedders
from retrieval.encoders.cosine_scale import CosineScales
from retrieval.encoders.model_calls import ModelCalls, model_key
from retrieval.engine.pipeline import Stage, narrowed
from retrieval.engine.state import RequestFilter, SearchState
from retrieval.engine.types import NOISE, Ranking
from retrieval.errors import SearchTimeoutError
from retrieval.index import recovery
from retrieval.index.embedding_index import same_model
from retrieval.index.recovery import QueriedIndex, other_rows
from retrieval.index.store import VectorIndex
from retrieval.presets.consolidated.evidence.cascade import Tier
from retrieval.presets.consolidated.evidence.phases import run_again
from retrieval.presets.consolidated.evidence.recovery import marked_beyond
from retrieval.presets.consolidated.evidence.section_state import SectionState
from retrieval.ranking.fusion import reciprocal_rank_fusion
from retrieval.stages.access import CheckAccess
from retrieval.stages.complete import Complete
from retrieval.stages.dense import Dense, DenseConfig
from retrieval.stages.fulltext import FulltextConfig
from retrieval.stages.fuse import FusionConfig

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RecoveryTiers:
    """Searches by tier."""

    search: tuple[Stage, ...]  #: The primary search without floors; the cascade's gate replaces them.
    words: tuple[Stage, ...]  #: Text legs; the first with hits is used.
    dense: DenseConfig
    fulltext: FulltextConfig
    fusion: FusionConfig
    index: VectorIndex
    #: Yields the other embedding indexes in scope whose models answer in time.
    other_indexes: Callable[[SearchState], Iterable[QueriedIndex]]
    uses_vectors: bool = True

    def found(self, tier: Tier, state: SearchState, section: SectionState) -> Ranking:
        """Return the hits of a tier, completed and checked against the scope; raise SearchTimeoutError."""
        state = replace(state, filter=filter_of(tier, section))
        if tier is Tier.STRUCTURE:
            found = recovery.within(
                section.headings,
                vector=state.vector,
                index=self.index,
                scope=state.scope,
                depth=self.dense.depth,
                timeout_seconds=state.deadline.leg_seconds,
            )
            return self._completed(found, state, self.index)
        if tier is Tier.INDEXES:
            return self._by_indexes(state) if self.uses_vectors else ()
        if tier is not Tier.LEXICAL:
            return _in_time(run_again(self.search, state), state).hits
        for leg in self.words:
            after = _in_time(leg(replace(state, rankings={})), state)
            if hits := self._completed(after.rankings.get(leg.name, ()), state, self.index):
                return hits
        return ()

    def only(self, leg: str) -> "RecoveryTiers":
        """Return the same with only the leg of this name."""
        return replace(
            self,
            search=narrowed(self.search, leg),
            words=tuple(it for it in self.words if it.name == leg),
            uses_vectors=leg == Dense.name,
        )

    def _by_indexes(self, state: SearchState) -> Ranking:
        own = () if state.vector is None else (QueriedIndex(self.index, state.vector),)
        found: dict[int, Ranking] = {}
        for it in (*own, *self.other_indexes(state)):
            queried = replace(state, vector=it.vector, rankings={})
            nearest = _in_time(Dense(self.dense, it.index)(queried), queried).rankings[Dense.name]
            hits = self._completed(nearest, queried, it.index)
            if it.noise is not None:
                hits = tuple(hit.with_signals({**hit.signals, NOISE: it.noise}) for hit in hits)
            found[it.index.id] = hits
        known = {hit.chunk_id: hit for ranking in reversed(found.values()) for hit in ranking}
        rankings = {f"index_{number}": ranking for number, ranking in found.items()}
        # By rank: cosines of different models are not comparable.
        fused = reciprocal_rank_fusion(rankings, rank_constant=self.fusion.rank_constant)
        pairs = ((hit, known[hit.chunk_id]) for hit in fused)
        return tuple(hit.known(it.chunk, {**hit.signals, **it.signals}, it.matches) for hit, it in pairs)

    def _completed(self, hits: Ranking, state: SearchState, index: VectorIndex) -> Ranking:
        found = Complete(self.fulltext, index)(replace(state, hits=hits, prefetch={}))
        return CheckAccess()(found).hits


def filter_of(tier: Tier, section: SectionState) -> RequestFilter:
    """Return the filter of a tier: the request's without its documents, or none."""
    return replace(section.request_filter, documents=frozenset()) if tier is Tier.DOCUMENTS else RequestFilter()


def mark_beyond_filter(hits: Ranking, state: SearchState, section: SectionState) -> Ranking:
    """Return the hits with those outside the request's filter marked; all of them on a timeout."""
    if not section.request_filter or not hits:
        return hits
    try:
        kept = recovery.passing(
            hits, scope=state.scope, request_filter=section.request_filter, timeout_seconds=state.deadline.read_seconds
        )
    except SearchTimeoutError:
        kept = frozenset()
    return marked_beyond(hits, kept)


def _in_time(after: SearchState, before: SearchState) -> SearchState:
    """Return the state; raise SearchTimeoutError if a leg timed out and nothing was found."""
    notes = (
        *after.notes[len(before.notes) :],
        *(note for span in after.trace[len(before.trace) :] for note in span.notes),
    )
    found_something = after.hits or any(after.rankings.values())
    if not found_something and any(note.code.endswith("_timeout") for note in notes):
        raise SearchTimeoutError
    return after


@dataclass(frozen=True, slots=True)
class OtherIndexes:
    """Yields the other indexes in scope, each with the query's vector by its model.

    An index whose model is missing or not loaded in time is left out; the model continues to load for the next search.
    """

    searched: VectorIndex
    #: The scales of the models' cosines; None for cosines as they are.
    scales: CosineScales | None = field(default_factory=CosineScales, compare=False, repr=False)
    calls: ModelCalls = field(default_factory=ModelCalls, compare=False, repr=False)
    includes_services: bool = False  #: Whether the query is also sent to the services of other indexes.

    def __call__(self, state: SearchState) -> Iterator[QueriedIndex]:
        """Yield index and vector; raise SearchTimeoutError."""
        text = state.query.for_models
        for row in other_rows(self.searched, scope=state.scope, timeout_seconds=state.deadline.leg_seconds):
            try:
                choice = embedders.of_index(row)
                if choice.service is not None and not self.includes_services:
                    continue
                model = _loader().submit(choice.load).result(timeout=state.deadline.leg_seconds)
                yield self._queried(same_model(row, model), model, text, seconds=state.deadline.leg_seconds)
            except (CoreCubeError, NotInTimeError) as error:
                logger.info("recovery.index_skipped index=%d error=%s", row.pk, type(error).__name__)

    def _queried(self, index: VectorIndex, model: Encoder, text: str, *, seconds: float) -> QueriedIndex:
        def work() -> QueriedIndex:
            noise = None if self.scales is None else self.scales.measured(model).noise
            return QueriedIndex(index, model.encode_query(text), noise)

        return self.calls.within(seconds, work, model=model_key(model))


@cache
def _loader() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(1, thread_name_prefix="model")
