"""The protocols of rerankers, and a stand-in for an unavailable reranker."""

import logging
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import monotonic
from typing import Final, NoReturn, Protocol, TypeVar, runtime_checkable

from corecube.scope import AccessScope
from retrieval.encoders.pooling import Floats
from retrieval.engine.types import Ranking, ScoreType
from retrieval.errors import RerankError, RerankTimeoutError
from retrieval.text.document import in_context

logger = logging.getLogger(__name__)

_T = TypeVar("_T")

#: A smaller range of the scores that are added to the blend counts as this wide; most ranges are 0.1 to 0.25.
MIN_SPAN: Final = 0.25
#: A shorter timeout does not count as a failure: the short deadline of one request must not open the breaker for all.
MIN_FAILURE_SECONDS: Final = 1.0


class Reranker(Protocol):
    """Scores texts jointly with a query; thread-safe."""

    @property
    def name(self) -> str:
        """The model's name, for traces."""

    @property
    def score_type(self) -> ScoreType:
        """The type of the scores of reranked hits."""

    @property
    def blend_weight(self) -> float | None:
        """The weight of its min-max-normalised scores in the blend; None if its order is final."""

    @property
    def problem(self) -> str:
        """Why it cannot be used now, as a sentence; empty if it can."""

    def score(self, query: str, texts: Sequence[str], *, timeout_seconds: float) -> list[float]:
        """Return one finite score per text in order, higher is better; raise RerankError, also when out of time."""


@runtime_checkable
class HitReranker(Protocol):
    """A reranker that reads the stored encodings of the hits, in scope, instead of their texts."""

    def read(self, query: str) -> Floats:
        """Return the vectors of a query, which can be made before there are hits; raise EncoderError."""

    def score_hits(
        self,
        query: str,
        hits: Ranking,
        *,
        scope: AccessScope,
        timeout_seconds: float,
        read: Callable[[], Floats] | None = None,
    ) -> list[float]:
        """Return one finite score per hit, in order, higher is better; raise RerankError as `Reranker.score` does.

        `read` waits for the vectors of the query where they are made already.
        """


@runtime_checkable
class BreakingReranker(Protocol):
    """A reranker with a circuit breaker."""

    def without_breaker(self) -> Reranker:
        """Return the same reranker without a breaker."""


def without_breaker(reranker: Reranker) -> Reranker:
    """Return a reranker without a breaker: two breakers in a row would count different failures."""
    return reranker.without_breaker() if isinstance(reranker, BreakingReranker) else reranker


@dataclass(frozen=True, slots=True)
class UnavailableReranker:
    """Replaces a configured reranker that is unavailable: every search falls back with a note."""

    name: str
    problem: str
    score_type: ScoreType = ScoreType.LOGIT
    blend_weight: float | None = None

    def score(self, query: str, texts: Sequence[str], *, timeout_seconds: float) -> NoReturn:  # noqa: ARG002 -- the protocol's
        """Raise RerankError with the problem."""
        raise RerankError(self.problem)


class TimeBox:
    """Runs pieces of work one after the other, and refuses a piece that would exceed the time limit.

    A piece is expected to take as long as the longest one so far. Thread-safe.
    """

    def __init__(self, seconds: float, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._end = clock() + seconds
        self._longest = 0.0

    def run(self, work: Callable[[], _T]) -> _T:
        """Return the result of the work; raise RerankTimeoutError instead of starting it too late."""
        started = self._clock()
        if started + self._longest > self._end:
            raise RerankTimeoutError
        result = work()
        self._longest = max(self._longest, self._clock() - started)
        return result


def scores_of(
    reranker: Reranker,
    query: str,
    hits: Ranking,
    *,
    scope: AccessScope,
    timeout_seconds: float,
    read: Callable[[], Floats] | None = None,
) -> list[float]:
    """Return one finite score per completed hit; raise RerankError, also for an unknown error.

    `read` is that of `HitReranker.score_hits`.
    """
    if timeout_seconds <= 0:
        raise RerankTimeoutError("No time was left for the reranker.")
    try:
        if isinstance(reranker, HitReranker):
            scores = reranker.score_hits(query, hits, scope=scope, timeout_seconds=timeout_seconds, read=read)
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
        raise RerankError(f"The reranker returned an invalid response: {len(scores)} scores for {count} texts.")
    if not all(map(math.isfinite, scores)):
        raise RerankError("The reranker returned an invalid response: a score is not a finite number.")
    return list(scores)
