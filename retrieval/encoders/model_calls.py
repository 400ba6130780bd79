"""Calls of models that end in time for their caller, whether or not the model comes back. No Django.

A call that is late goes on in its thread, since nothing can break it off. Late calls of one model are few: while they
have not come back, it is not called again.
"""

import logging
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from threading import Lock, Thread
from time import monotonic
from typing import Any, Final, TypeVar

from corecube.errors import CoreCubeError
from retrieval.encoders.breaker import Attempt, CircuitBreaker
from retrieval.encoders.reranker import FAIR_SECONDS
from retrieval.errors import (
    EncoderError,
    EncoderTimeoutError,
    EncoderUnavailableError,
    RerankBreakerOpenError,
    RerankError,
    RerankTimeoutError,
)

logger = logging.getLogger(__name__)

#: Late calls of one model that go on at once, and those of them that have had a fair time.
MAX_LATE: Final = 16
MAX_OVERDUE: Final = 2

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Faults:
    """The errors of one kind of model."""

    #: It did not answer in time; its own error of this type counts as that too.
    late: type[CoreCubeError]
    #: It was late several times in a row, and is left alone for a while.
    refused: type[CoreCubeError]
    #: Earlier calls have not come back.
    stuck: type[CoreCubeError]


RERANKER: Final = Faults(RerankTimeoutError, RerankBreakerOpenError, RerankError)
ENCODER: Final = Faults(EncoderTimeoutError, EncoderUnavailableError, EncoderError)


@dataclass(slots=True, eq=False)
class _Call:
    """One call of a model."""

    began: float
    #: None where another breaker hears of it.
    attempt: Attempt | None
    outcome: "Future[Any]" = field(default_factory=Future)
    is_late: bool = False

    def run(self, work: Callable[[], object]) -> None:
        """Do the work and keep what comes of it."""
        try:
            self.outcome.set_result(work())
        except BaseException as error:  # noqa: BLE001 -- handed to the caller by the outcome
            self.outcome.set_exception(error)


@dataclass(slots=True)
class _Model:
    """What is known of one model: its breaker, and its late calls that have not come back."""

    breaker: CircuitBreaker
    late: set[_Call] = field(default_factory=set)


class ModelCalls:
    """Makes the calls of a process's models, each in a thread of its own. Safe to share between threads.

    A model that is late three times in a row is left alone for half a minute. Being late after less than a second is
    no failure: a request may shorten its own deadline.
    """

    def __init__(self, *, release: Callable[[], None] | None = None, clock: Callable[[], float] = monotonic) -> None:
        """`release` gives back the database connection of a thread; without it, who reads stays in its own thread."""
        self._release = release
        self._clock = clock
        self._lock = Lock()
        self._models: dict[str, _Model] = {}

    def within(
        self, seconds: float, work: Callable[[], _T], *, model: str, faults: Faults = ENCODER, breaks: bool = True
    ) -> _T:
        """Return what the work of a model returns, and raise what it raises, in time.

        After `seconds`, or where the model is left alone, raises one of `faults`. Without `breaks` another breaker
        stands before the model, and hears of these errors.
        """
        if seconds <= 0:
            raise faults.late
        call = self._begun(model, faults, breaks=breaks)
        call.outcome.add_done_callback(lambda _: self._came_back(call, self._model(model), faults))
        Thread(target=call.run, args=(work,), name="model-call", daemon=True).start()
        outcome: Future[_T] = call.outcome
        try:
            return outcome.result(seconds)
        except TimeoutError:
            if not self._gives_up(call, self._model(model)):
                return outcome.result()
            logger.warning("model.late model=%s seconds=%.2f", model, seconds)
            raise faults.late from None

    def reading_within(
        self, seconds: float, work: Callable[[], _T], *, model: str, faults: Faults = ENCODER, breaks: bool = True
    ) -> _T:
        """Do the same for work that reads the database too; in the caller's thread where no other may."""
        release = self._release
        if release is None:
            return work()

        def released() -> _T:
            try:
                return work()
            finally:
                release()

        return self.within(seconds, released, model=model, faults=faults, breaks=breaks)

    def _begun(self, model: str, faults: Faults, *, breaks: bool) -> _Call:
        """Return a call that may be made; raise where the model is left alone, or has not come back."""
        known, now = self._model(model, faults), self._clock()
        with self._lock:
            overdue = sum(now - call.began >= FAIR_SECONDS for call in known.late)
            is_stuck = overdue >= MAX_OVERDUE or len(known.late) >= MAX_LATE
        if is_stuck:
            raise faults.stuck("Earlier calls of the model have not come back; it is not asked until they do.")
        return _Call(now, known.breaker.admitted() if breaks else None)

    def _model(self, model: str, faults: Faults = ENCODER) -> _Model:
        with self._lock:
            if model not in self._models:
                self._models[model] = _Model(CircuitBreaker(clock=self._clock, refusal=faults.refused))
            return self._models[model]

    def _gives_up(self, call: _Call, known: _Model) -> bool:
        """Mark a call as late and return True, unless it has just come back."""
        with self._lock:
            if call.outcome.done():
                return False
            call.is_late = True
            known.late.add(call)
        if call.attempt and self._was_fair(call):
            call.attempt.failed()
        return True

    def _came_back(self, call: _Call, known: _Model, faults: Faults) -> None:
        with self._lock:
            known.late.discard(call)
            is_late = call.is_late
        if call.attempt is None:
            return
        error = call.outcome.exception()
        if (is_late or isinstance(error, faults.late)) and self._was_fair(call):
            call.attempt.failed()
        elif is_late or error is not None:
            call.attempt.dismissed()
        else:
            call.attempt.succeeded()

    def _was_fair(self, call: _Call) -> bool:
        return self._clock() - call.began >= FAIR_SECONDS


def model_key(model: object) -> str:
    """Return what names a model among all of the process: its kind and its name, as some are made anew each time."""
    return f"{type(model).__qualname__} {getattr(model, 'name', '')}".strip()
