"""Calling a cross-encoder for a pool, in concurrent batches, within the remaining time."""

from collections.abc import Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from typing import Final

from corecube.scope import AccessScope
from retrieval.encoders.reranker import Reranker, scores_of
from retrieval.engine.deadline import Deadline
from retrieval.engine.types import Ranking
from retrieval.errors import RerankError, RerankTimeoutError

#: Concurrent batches of one search.
MAX_AT_ONCE: Final = 4
#: Half-open index range of a batch in the pool.
Batch = tuple[int, int]
Outcome = Sequence[float] | Exception


@dataclass(frozen=True, slots=True)
class RerankCall:
    """A call of a cross-encoder."""

    reranker: Reranker
    query: str
    scope: AccessScope
    deadline: Deadline

    def outcomes(self, hits: Ranking, batches: Sequence[Batch], executor: Executor) -> list[tuple[Batch, Outcome]]:
        """Return each batch with its scores or its RerankError.

        The wait hardly exceeds the time limit even if the cross-encoder does, unless the executor runs in the caller's
        thread.
        """
        lanes = [batches[lane::MAX_AT_ONCE] for lane in range(min(MAX_AT_ONCE, len(batches)))]

        def run(lane: Sequence[Batch]) -> list[Outcome]:
            return [self._outcome(hits[start:end]) for start, end in lane]

        futures = [executor.submit(run, lane) for lane in lanes]
        found: dict[Batch, Outcome] = {}
        for lane, future in zip(lanes, futures, strict=True):
            found |= zip(lane, self._outcomes(future, lane), strict=True)
        return [(batch, found[batch]) for batch in batches]

    def _outcomes(self, future: Future[list[Outcome]], lane: Sequence[Batch]) -> list[Outcome]:
        # Slightly longer than the time limit, for an answer at the last moment.
        patience = (self.deadline.leg_seconds + self.deadline.remaining_seconds) / 2
        try:
            return future.result(timeout=patience)
        except TimeoutError:
            future.cancel()
            return [RerankTimeoutError() for _ in lane]
        except RerankError as error:
            return [error for _ in lane]

    def _outcome(self, hits: Ranking) -> Outcome:
        """Return one finite score per hit, or the RerankError."""
        seconds = self.deadline.leg_seconds
        try:
            return scores_of(self.reranker, self.query, hits, scope=self.scope, timeout_seconds=seconds)
        except RerankError as error:
            return error
