"""Calls of models, also of rerankers, with a time limit.

A late call continues in its thread, since threads cannot be interrupted. The number of late calls per model is limited:
beyond it the model is not called again.
"""

import logging
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from threading import Lock, Thread
from time import monotonic
from typing import Any, Final, TypeVar

from corecube import tracing
from corecube.errors import CoreCubeError
from corecube.scope import AccessScope
from retrieval import errors
from retrieval.encoders.breaker import Attempt, CircuitBreaker
from retrieval.encoders.pooling import Floats
from retrieval.encoders.reranker import MIN_FAILURE_SECONDS, BreakingReranker, HitReranker, Reranker
from retrieval.engine.types import Ranking, ScoreType

logger = logging.getLogger(__name__)

#: Maximum number of late calls per model, and of those that run for longer than MIN_FAILURE_SECONDS.
MAX_LATE: Final = 16
MAX_OVERDUE: Final = 2

_T = TypeVar("_T")
_GRACE_SECONDS: Final = 0.05  #: Lets the reranker's own, more precise timeout come first.


@dataclass(frozen=True, slots=True)
class Faults:
    """The errors of one kind of model."""

    late: type[CoreCubeError]  #: The call exceeded its time limit; the model's errors of this type count as late too.
    refused: type[CoreCubeError]  #: The breaker is open.
    stuck: type[CoreCubeError]  #: Earlier calls are still running.


RERANKER: Final = Faults(errors.RerankTimeoutError, errors.RerankBreakerOpenError, errors.RerankError)
ENCODER: Final = Faults(errors.EncoderTimeoutError, errors.EncoderUnavailableError, errors.EncoderError)


@dataclass(slots=True, eq=False)
class _Call:
    began: float
    attempt: Attempt | None  #: None if another breaker counts the call.
    outcome: "Future[Any]" = field(default_factory=Future)
    is_late: bool = False

    def run(self, work: Callable[[], object]) -> None:
        """Run the work and set the outcome."""
        try:
            self.outcome.set_result(work())
        except BaseException as error:  # noqa: BLE001 -- passed to the caller by the outcome
            self.outcome.set_exception(error)


@dataclass(slots=True)
class _Model:
    breaker: CircuitBreaker
    late: set[_Call] = field(default_factory=set)


class ModelCalls:
    """Runs the calls of a process's models, each in a separate thread. Thread-safe.

    After three consecutive late calls a model is not called for half a minute. A timeout below a second is not a
    failure: a request may have a short deadline.
    """

    def __init__(self, *, release: Callable[[], None] | None = None, clock: Callable[[], float] = monotonic) -> None:
        """`release` releases a thread's database connection; without it, database reads run in the caller's thread."""
        self._release = release
        self._clock = clock
        self._lock = Lock()
        self._models: dict[str, _Model] = {}

    def within(
        self, seconds: float, work: Callable[[], _T], *, model: str, faults: Faults = ENCODER, breaks: bool = True
    ) -> _T:
        """Run a model's work within a time limit, and return its result or raise its error.

        After `seconds`, or while the breaker is open, raises one of `faults`. Without `breaks` another breaker counts
        these errors.
        """
        if seconds <= 0:
            raise faults.late
        known, now = self._model(model, faults), self._clock()
        with self._lock:
            overdue = sum(now - call.began >= MIN_FAILURE_SECONDS for call in known.late)
            is_stuck = overdue >= MAX_OVERDUE or len(known.late) >= MAX_LATE
        if is_stuck:
            raise faults.stuck("Earlier calls of the model are still running; it is not called until they end.")
        call = _Call(now, known.breaker.admitted() if breaks else None)
        call.outcome.add_done_callback(lambda _: self._finish(call, self._model(model), faults))
        Thread(target=call.run, args=(work,), name="model-call", daemon=True).start()
        outcome: Future[_T] = call.outcome
        with tracing.span("model call", corecube__model=model):
            try:
                return outcome.result(seconds)
            except TimeoutError:
                if not self._mark_late(call, self._model(model)):
                    return outcome.result()
                logger.warning("model_call.timed_out model=%s seconds=%.2f", model, seconds)
                raise faults.late from None

    def reading_within(
        self, seconds: float, work: Callable[[], _T], *, model: str, faults: Faults = ENCODER, breaks: bool = True
    ) -> _T:
        """As `within`, for work that reads the database; without `release` it runs in the caller's thread."""
        release = self._release
        if release is None:
            return work()

        def released() -> _T:
            try:
                return work()
            finally:
                release()

        return self.within(seconds, released, model=model, faults=faults, breaks=breaks)

    def _model(self, model: str, faults: Faults = ENCODER) -> _Model:
        with self._lock:
            if model not in self._models:
                self._models[model] = _Model(CircuitBreaker(clock=self._clock, refusal=faults.refused))
            return self._models[model]

    def _mark_late(self, call: _Call, known: _Model) -> bool:
        """Mark a call as late and return True, unless it has just ended."""
        with self._lock:
            if call.outcome.done():
                return False
            call.is_late = True
            known.late.add(call)
        if call.attempt and self._counts(call):
            call.attempt.failed()
        return True

    def _finish(self, call: _Call, known: _Model, faults: Faults) -> None:
        with self._lock:
            known.late.discard(call)
            is_late = call.is_late
        if call.attempt is None:
            return
        error = call.outcome.exception()
        if (is_late or isinstance(error, faults.late)) and self._counts(call):
            call.attempt.failed()
        elif is_late or error is not None:
            call.attempt.dismissed()
        else:
            call.attempt.succeeded()

    def _counts(self, call: _Call) -> bool:
        return self._clock() - call.began >= MIN_FAILURE_SECONDS


def model_key(model: object) -> str:
    """Return the key of a model in the process: type and name, which do not change with a new instance."""
    return f"{type(model).__qualname__} {getattr(model, 'name', '')}".strip()


@dataclass(frozen=True, slots=True)
class TimedReranker:
    """Calls a reranker with a time limit."""

    reranker: Reranker
    calls: ModelCalls
    breaks: bool  #: Whether a breaker counts the failures here; False if another one does.

    @property
    def name(self) -> str:
        """The model's name, for traces."""
        return self.reranker.name

    @property
    def score_type(self) -> ScoreType:
        """The type of the scores of reranked hits."""
        return self.reranker.score_type

    @property
    def blend_weight(self) -> float | None:
        """The weight of its min-max-normalised scores in the blend; None if its order is final."""
        return self.reranker.blend_weight

    @property
    def problem(self) -> str:
        """Why it cannot be used now, as a sentence; empty if it can."""
        return self.reranker.problem

    def score(self, query: str, texts: Sequence[str], *, timeout_seconds: float) -> list[float]:
        """Return one score per text within the time limit; raise RerankError as `Reranker.score` does."""

        def work() -> list[float]:
            return self.reranker.score(query, texts, timeout_seconds=timeout_seconds)

        return self._within(self.calls.within, timeout_seconds, work)

    def _within(
        self, within: Callable[..., list[float]], timeout_seconds: float, work: Callable[[], list[float]]
    ) -> list[float]:
        key = model_key(self.reranker)
        return within(timeout_seconds + _GRACE_SECONDS, work, model=key, faults=RERANKER, breaks=self.breaks)


@dataclass(frozen=True, slots=True)
class TimedHitReranker(TimedReranker):
    """Calls a reranker of stored encodings with a time limit."""

    hit_reranker: HitReranker

    def read(self, query: str) -> Floats:
        """Return the vectors of a query; raise EncoderError."""
        return self.hit_reranker.read(query)

    def score_hits(
        self,
        query: str,
        hits: Ranking,
        *,
        scope: AccessScope,
        timeout_seconds: float,
        read: Callable[[], Floats] | None = None,
    ) -> list[float]:
        """Return one score per hit, in order; raise RerankError as `score` does."""

        def work() -> list[float]:
            return self.hit_reranker.score_hits(query, hits, scope=scope, timeout_seconds=timeout_seconds, read=read)

        return self._within(self.calls.reading_within, timeout_seconds, work)


def timed(reranker: Reranker, calls: ModelCalls, *, breaks: bool = True) -> TimedReranker:
    """Return a reranker with a time limit for every call.

    A breaker counts late calls, unless the reranker has one or `breaks` is False: two breakers in a row would count
    different failures.
    """
    breaks = breaks and not isinstance(reranker, BreakingReranker)
    if isinstance(reranker, HitReranker):
        return TimedHitReranker(reranker, calls, breaks, reranker)
    return TimedReranker(reranker, calls, breaks)
