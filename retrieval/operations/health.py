"""/healthz and /readyz, for process managers and monitoring. They report states without reasons."""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from django.http import HttpRequest, JsonResponse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from corecube.bounded import BoundedCheck
from corecube.health import require_database
from corecube.replicas import replicas
from corecube.same_key import note_key
from corecube.shared_state.store import shared
from retrieval.encoders.breaker import BreakerState
from retrieval.index import active
from retrieval.index.bm25 import follower as bm25
from retrieval.index.vectors import follower as vectors
from retrieval.llm.clients import stored_models
from retrieval.llm.reachability import ModelState, status_of, status_words
from retrieval.operations.backups import backup_status
from retrieval.search import runtime

logger = logging.getLogger(__name__)

_PART_SECONDS: Final = 0.7  #: Timeout of each part, so that a response takes less than a second.
_HEALTHY: Final = frozenset({ModelState.READY, ModelState.OFF})  #: States of language models that need no attention.
_REQUIRED: Final = frozenset({"database", "model"})  #: Parts that every search needs.


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


def checked_parts(seconds: float = _PART_SECONDS) -> Mapping[str, Part]:
    """Return the state of each part of a search within so many seconds, even if a part hangs."""
    for check in _CHECKS.values():
        check.start()
    parts = {}
    for name, check in _CHECKS.items():
        try:
            parts[name] = check.result(seconds=seconds)
        except TimeoutError:
            logger.warning("ready.timeout part=%s", name)
            state = State.FAILED if name in _REQUIRED else State.DEGRADED
            parts[name] = Part(state, f"It did not answer within {seconds:g} s.", timed_out=True)
    return parts


def _database() -> None:
    require_database()
    note_key()


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


def _optional(problem: Callable[[], str]) -> Part:
    try:
        reason = problem()
    except Exception as error:  # noqa: BLE001 -- the state is unknown without the database, which is another part
        return Part(State.DEGRADED, str(error))
    return Part(State.DEGRADED if reason else State.OK, reason)


def _failing_models() -> str:
    now = timezone.now()
    statuses = [(model.name, status_of(model)) for model in stored_models()]
    return " ".join(f"{name} {status_words(it, now)}" for name, it in statuses if it.state not in _HEALTHY)


def _sharing_problem() -> str:
    store = shared()
    return store.problem if store else ""


def _backup_problem() -> str:
    return backup_status().problem


_CHECKS: Final[Mapping[str, BoundedCheck[Part]]] = {
    "database": BoundedCheck(lambda: _required(_database)),
    "model": BoundedCheck(lambda: _required(lambda: active.encoder())),  # noqa: PLW0108 -- tests replace the encoder
    "reranker": BoundedCheck(_reranker),
    "bm25": BoundedCheck(lambda: _optional(lambda: bm25.follower().status().problem)),
    "vectors": BoundedCheck(lambda: _optional(lambda: vectors.follower().status().problem)),
    "language_model": BoundedCheck(lambda: _optional(_failing_models)),
    "redis": BoundedCheck(lambda: _optional(_sharing_problem)),
    "backup": BoundedCheck(lambda: _optional(_backup_problem)),
    **({"replicas": BoundedCheck(lambda: _optional(replicas().words))} if replicas().each else {}),
}
