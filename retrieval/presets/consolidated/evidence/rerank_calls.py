"""Asking a cross-encoder about a pool, batch by batch, side by side, within the time that is left."""

import logging
from collections.abc import Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from typing import Final

from corecube.scope import AccessScope
from retrieval.encoders.reranker import HitReranker, Reranker, checked_scores
from retrieval.engine.deadline import Deadline
from retrieval.engine.types import Ranking
from retrieval.errors import RerankError, RerankTimeoutError
from retrieval.text.context_line import in_context

logger = logging.getLogger(__name__)

#: Batches of one search that are asked side by side; of more, each thread asks several after each other.
MAX_AT_ONCE: Final = 4
#: (first, after last) of a batch's places in the pool.
Batch = tuple[int, int]
Outcome = Sequence[float] | Exception


@dataclass(frozen=True, slots=True)
class RerankCall:
    """What a cross-encoder is asked."""

    reranker: Reranker
    query: str
    scope: AccessScope
    deadline: Deadline

    def outcomes(self, hits: Ranking, batches: Sequence[Batch], executor: Executor) -> list[tuple[Batch, Outcome]]:
        """Return each batch with its scores, or with the RerankError that it ended in.

        None is waited for much longer than the time that it was given, whatever the cross-encoder does; an executor
        that works in the caller's thread cannot promise that.
        """
        lanes = [batches[lane::MAX_AT_ONCE] for lane in range(min(MAX_AT_ONCE, len(batches)))]
        futures = [executor.submit(self._lane, hits, lane) for lane in lanes]
        found: dict[Batch, Outcome] = {}
        for lane, future in zip(lanes, futures, strict=True):
            found |= zip(lane, self._outcomes(future, lane), strict=True)
        return [(batch, found[batch]) for batch in batches]

    def _outcomes(self, future: Future[list[Outcome]], lane: Sequence[Batch]) -> list[Outcome]:
        # Past the time that it was given, for an answer that comes in its last moment.
        patience = (self.deadline.leg_seconds + self.deadline.remaining_seconds) / 2
        try:
            return future.result(timeout=patience)
        except TimeoutError:
            future.cancel()
            return [RerankTimeoutError() for _ in lane]
        except RerankError as error:
            return [error for _ in lane]

    def _lane(self, hits: Ranking, lane: Sequence[Batch]) -> list[Outcome]:
        """Return what becomes of batches, asked one after the other."""
        return [self._tried(hits[start:end]) for start, end in lane]

    def _tried(self, hits: Ranking) -> Outcome:
        try:
            return self._scores(hits)
        except RerankError as error:
            return error

    def _scores(self, hits: Ranking) -> list[float]:
        """Return one finite score per hit; raise RerankError, whatever goes wrong."""
        seconds = self.deadline.leg_seconds
        if seconds <= 0:
            raise RerankTimeoutError("No time was left for the reranker.")
        try:
            return checked_scores(self._answer(hits, seconds), count=len(hits))
        except RerankError:
            raise
        except Exception as error:
            # Its name alone: the message of an unknown error may hold text of documents.
            logger.error("rerank.broken reranker=%s error=%s", self.reranker.name, type(error).__name__)  # noqa: TRY400
            raise RerankError("The reranker failed unexpectedly.") from error

    def _answer(self, hits: Ranking, seconds: float) -> list[float]:
        if isinstance(self.reranker, HitReranker):
            return self.reranker.score_hits(self.query, hits, scope=self.scope, timeout_seconds=seconds)
        texts = [in_context(hit.chunk.title, hit.chunk.heading_path, hit.chunk.text) for hit in hits]
        return self.reranker.score(self.query, texts, timeout_seconds=seconds)
