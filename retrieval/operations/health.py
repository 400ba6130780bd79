"""/healthz and /readyz, for process managers and monitoring. They report states without reasons."""

import logging
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from enum import StrEnum
from threading import Lock, Thread
from time import monotonic
from typing import Final, Generic, TypeVar

from django.db import connections
from django.http import HttpRequest, JsonResponse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from corecube.health import require_database
from retrieval.encoders.breaker import BreakerState
from retrieval.index import active
from retrieval.index.bm25.follower import bm25_status
from retrieval.llm.clients import stored_models
from retrieval.llm.reachability import ModelState, status_of, status_words
from retrieval.search import runtime

logger = logging.getLogger(__name__)

_PART_SECONDS: Final = 0.7  #: Timeout of each part, so that a response takes less than a second.
_HEALTHY: Final = frozenset({ModelState.READY, ModelState.OFF})  #: States of language models that need no attention.
_REQUIRED: Final = frozenset({"database", "model"})  #: Parts that every search needs.
_Result = TypeVar("_Result")


class BoundedCheck(Generic[_Result]):
    """A check that runs in a thread, at most once at a time: if it hangs, it blocks one thread, as callers share it."""

    def __init__(self, check: Callable[[], _Result]) -> None:
        self._check = check
        self._lock = Lock()
        self._result: Future[_Result] = Future()
        self._started_at: float | None = None

    def start(self) -> None:
        """Start the check unless it is running."""
        with self._lock:
            if self._started_at is None or self._result.done():
                self._result, self._started_at = Future(), monotonic()
                Thread(target=self._run, args=(self._result,), name="check", daemon=True).start()

    def result(self, *, seconds: float) -> _Result:
        """Return or raise the result of the last check; raise TimeoutError if it has been running for `seconds`."""
        with self._lock:
            result, left = self._result, (self._started_at or 0.0) + seconds - monotonic()
        return result.result(timeout=max(0.0, left))

    def _run(self, result: "Future[_Result]") -> None:
        try:
            value = self._check()
        except Exception as error:  # noqa: BLE001 -- raised by `result`
            _close_connections()
            result.set_exception(error)
        else:
            _close_connections()
            result.set_result(value)


def _close_connections() -> None:
    for connection in connections.all(initialized_only=True):
        connection.close()


class State(StrEnum):
    """The state of a part of the installation."""

    OK = "ok"
    DEGRADED = "degraded"  #: Searches work without it.
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the installation and its state."""

    state: State
    reason: str = ""  #: What is wrong, for admins; empty for OK.
    timed_out: bool = False  #: Whether it did not respond in time.


@require_safe
@never_cache
def healthz(request: HttpRequest) -> JsonResponse:  # noqa: ARG001 -- Django's signature
    """Report that the process responds; checks nothing else."""
    return JsonResponse({"status": State.OK})


@require_safe
@never_cache
def readyz(request: HttpRequest) -> JsonResponse:  # noqa: ARG001 -- Django's signature
    """Report whether searches can be served: 200, also if a part is degraded, or 503."""
    parts = checked_parts()
    states = {name: part.state for name, part in parts.items()}
    status = next((state for state in (State.FAILED, State.DEGRADED) if state in states.values()), State.OK)
    timed_out = [name for name, part in parts.items() if part.timed_out]
    body = {"status": status, "parts": states, **({"timed_out": timed_out} if timed_out else {})}
    return JsonResponse(body, status=503 if status is State.FAILED else 200)


def checked_parts() -> Mapping[str, Part]:
    """Return the state of each part of a search within 0.7 s, even if a part hangs."""
    for check in _CHECKS.values():
        check.start()
    parts = {}
    for name, check in _CHECKS.items():
        try:
            parts[name] = check.result(seconds=_PART_SECONDS)
        except TimeoutError:
            logger.warning("ready.timeout part=%s", name)
            state = State.FAILED if name in _REQUIRED else State.DEGRADED
            parts[name] = Part(state, f"It did not answer within {_PART_SECONDS} s.", timed_out=True)
    return parts


def _required(use: Callable[[], object]) -> Part:
    try:
        use()
    except Exception as error:  # noqa: BLE001 -- a part that fails in any way has failed
        logger.warning("ready.failed error=%s reason=%s", type(error).__name__, error)
        return Part(State.FAILED, str(error))
    return Part(State.OK)


def _reranker() -> Part:
    try:
        reranker = runtime.reranker()
    except Exception as error:  # noqa: BLE001 -- a search falls back after any error
        logger.warning("ready.degraded error=%s reason=%s", type(error).__name__, error)
        return Part(State.DEGRADED, str(error))
    problem = reranker.problem if reranker is not None else ""
    if reranker is not None and not problem and runtime.rerank_guards.states.get(reranker.name) is BreakerState.OPEN:
        problem = "It failed several times in a row; evidence searches do not use it for a while."
    return Part(State.DEGRADED if problem else State.OK, problem)


def _language_models() -> Part:
    try:
        statuses = [(model.name, status_of(model)) for model in stored_models()]
    except Exception as error:  # noqa: BLE001 -- the state is unknown without the database, which is another part
        return Part(State.DEGRADED, str(error))
    now = timezone.now()
    failing = [f"{name} {status_words(it, now)}" for name, it in statuses if it.state not in _HEALTHY]
    return Part(State.DEGRADED if failing else State.OK, " ".join(failing))


def _bm25() -> Part:
    try:
        problem = bm25_status().problem
    except Exception as error:  # noqa: BLE001 -- the state is unknown without the database, which is another part
        return Part(State.DEGRADED, str(error))
    return Part(State.DEGRADED if problem else State.OK, problem)


_CHECKS: Final[Mapping[str, BoundedCheck[Part]]] = {
    "database": BoundedCheck(lambda: _required(require_database)),
    "model": BoundedCheck(lambda: _required(lambda: active.encoder())),  # noqa: PLW0108 -- tests replace the encoder
    "reranker": BoundedCheck(_reranker),
    "bm25": BoundedCheck(_bm25),
    "language_model": BoundedCheck(_language_models),
}
