"""What the engine asks of a reranker, and the one that stands for a reranker that cannot be had."""

import logging
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import monotonic
from typing import Final, NoReturn, Protocol, TypeVar, runtime_checkable

from corecube.scope import AccessScope
from retrieval.engine.types import Ranking, ScoreType
from retrieval.errors import RerankError, RerankTimeoutError
from retrieval.text.context_line import in_context

logger = logging.getLogger(__name__)

_T = TypeVar("_T")

#: A reranker that does not answer in less time than this has not failed: a request may shorten its own deadline, and
#: must not open a breaker for everybody by it.
FAIR_SECONDS: Final = 1.0


class Reranker(Protocol):
    """Scores texts jointly with a query; safe to call from several threads."""

    @property
    def name(self) -> str:
        """The model's name, for traces."""

    @property
    def score_type(self) -> ScoreType:
        """What the scores of reranked hits mean."""

    @property
    def blend_weight(self) -> float | None:
        """What its scores, min-max-normalised, weigh beside the blend's; None where its order is final."""

    @property
    def problem(self) -> str:
        """A sentence on why it cannot be used right now; empty while nothing is known against it."""

    def score(self, query: str, texts: Sequence[str], *, timeout_seconds: float) -> list[float]:
        """Return one finite score per text, in input order, higher is better.

        Raises RerankError (and its subclasses) when it fails, answers nonsense, or would take longer than
        `timeout_seconds`.
        """


@runtime_checkable
class HitReranker(Protocol):
    """A reranker that reads what the store has of the hits, in scope, and not their texts."""

    def score_hits(self, query: str, hits: Ranking, *, scope: AccessScope, timeout_seconds: float) -> list[float]:
        """Return one finite score per hit, in order, higher is better; raise RerankError as `Reranker.score` does."""


@runtime_checkable
class BreakingReranker(Protocol):
    """A reranker that leaves what it asks alone by itself after failures."""

    def without_breaker(self) -> Reranker:
        """Return one that does not."""


def without_breaker(reranker: Reranker) -> Reranker:
    """Return a reranker that is asked whenever its caller asks: two breakers in a row would know different things."""
    return reranker.without_breaker() if isinstance(reranker, BreakingReranker) else reranker


@dataclass(frozen=True, slots=True)
class UnavailableReranker:
    """Stands for a reranker that is configured and cannot be had: every search falls back and says why."""

    name: str
    problem: str
    score_type: ScoreType = ScoreType.LOGIT
    blend_weight: float | None = None

    def score(self, query: str, texts: Sequence[str], *, timeout_seconds: float) -> NoReturn:  # noqa: ARG002 -- the protocol's
        """Raise RerankError with the problem."""
        raise RerankError(self.problem)


class TimeBox:
    """Runs pieces of work one after the other and refuses the piece that would outlast the time.

    A piece is expected to take as long as the longest one so far. Threads may share a box.
    """

    def __init__(self, seconds: float, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._end = clock() + seconds
        self._longest = 0.0

    def run(self, work: Callable[[], _T]) -> _T:
        """Return what the work returns; raise RerankTimeoutError instead of starting it too late."""
        started = self._clock()
        if started + self._longest > self._end:
            raise RerankTimeoutError
        result = work()
        self._longest = max(self._longest, self._clock() - started)
        return result


def scores_of(
    reranker: Reranker, query: str, hits: Ranking, *, scope: AccessScope, timeout_seconds: float
) -> list[float]:
    """Return one finite score per completed hit; raise RerankError, also for an unknown error."""
    if timeout_seconds <= 0:
        raise RerankTimeoutError("No time was left for the reranker.")
    try:
        if isinstance(reranker, HitReranker):
            scores = reranker.score_hits(query, hits, scope=scope, timeout_seconds=timeout_seconds)
        else:
            texts = [in_context(hit.chunk.title, hit.chunk.heading_path, hit.chunk.text) for hit in hits]
            scores = reranker.score(query, texts, timeout_seconds=timeout_seconds)
        return checked_scores(scores, count=len(hits))
    except RerankError:
        raise
    except Exception as error:
        # Only the class: the message of an unknown error may contain document text.
        logger.error("rerank.failed reranker=%s error=%s", reranker.name, type(error).__name__)  # noqa: TRY400
        raise RerankError("The reranker failed unexpectedly.") from error


def checked_scores(scores: Sequence[float], *, count: int) -> list[float]:
    """Return the scores; raise RerankError unless there are `count` of them, all finite."""
    if len(scores) != count:
        raise RerankError(f"The reranker answered garbage: {len(scores)} scores for {count} texts.")
    if not all(map(math.isfinite, scores)):
        raise RerankError("The reranker answered garbage: a score that is no number.")
    return list(scores)
