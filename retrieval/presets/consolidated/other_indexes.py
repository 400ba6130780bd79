"""The other embedding indexes, queried with their models for recovery."""

import logging
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotInTimeError
from dataclasses import dataclass, field
from functools import cache

from corecube.errors import CoreCubeError
from retrieval.encoders import Encoder, embedders
from retrieval.encoders.cosine_scale import CosineScales
from retrieval.encoders.model_calls import ModelCalls, model_key
from retrieval.encoders.remote_encoder import RemoteEncoder
from retrieval.engine.state import SearchState
from retrieval.index.embedding_index import same_model
from retrieval.index.recovery import QueriedIndex, other_rows
from retrieval.index.store import VectorIndex

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class OtherIndexes:
    """Yields the other indexes in scope, each with the query's vector by its model.

    Indexes of remote services are left out, and those whose model is missing or not loaded in time; it continues to
    load for the next search.
    """

    searched: VectorIndex
    scales: CosineScales = field(default_factory=CosineScales, compare=False, repr=False)
    calls: ModelCalls = field(default_factory=ModelCalls, compare=False, repr=False)

    def __call__(self, state: SearchState) -> Iterator[QueriedIndex]:
        """Yield index and vector; raise SearchTimeoutError."""
        text = state.query.plain_text or state.query.retrieval_text
        for row in other_rows(self.searched, scope=state.scope, timeout_seconds=state.deadline.leg_seconds):
            try:
                choice = embedders.of_index(row)
                if choice.service is not None:
                    continue
                model = _loader().submit(choice.load).result(timeout=state.deadline.leg_seconds)
                if isinstance(model, RemoteEncoder):
                    continue
                yield self._queried(same_model(row, model), model, text, seconds=state.deadline.leg_seconds)
            except (CoreCubeError, NotInTimeError) as error:
                logger.info("recovery.index_skipped index=%d error=%s", row.pk, type(error).__name__)

    def _queried(self, index: VectorIndex, model: Encoder, text: str, *, seconds: float) -> QueriedIndex:
        def work() -> QueriedIndex:
            return QueriedIndex(index, model.encode_query(text), self.scales.measured(model).noise)

        return self.calls.within(seconds, work, model=model_key(model))


@cache
def _loader() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(1, thread_name_prefix="model")
