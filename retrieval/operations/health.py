"""/healthz and /readyz, for whatever starts and watches the process. They tell states and never why."""

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
from retrieval.encoders.breaker import BreakerState
from retrieval.encoders.reranker import Reranker
from retrieval.index import active
from retrieval.index.bm25.status import bm25_status
from retrieval.llm.environment import stored_models
from retrieval.llm.reachability import ModelState, status_of, status_words
from retrieval.search import runtime

logger = logging.getLogger(__name__)

#: How long a part may take to answer: who asks for all of them waits for less than a second.
_PART_SECONDS: Final = 0.7
#: States of language models that nobody has to look after.
_WELL: Final = frozenset({ModelState.READY, ModelState.OFF})


class State(StrEnum):
    """How a part of the installation is."""

    OK = "ok"
    #: Searches go on without it.
    DEGRADED = "degraded"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the installation, and how it is."""

    state: State
    #: Why it is not well, for admins; empty when it is.
    reason: str = ""
    #: Whether it gave no answer at all.
    timed_out: bool = False


@require_safe
@never_cache
def healthz(request: HttpRequest) -> JsonResponse:  # noqa: ARG001 -- Django's signature
    """Say that the process answers; asks for nothing else."""
    return JsonResponse({"status": State.OK})


@require_safe
@never_cache
def readyz(request: HttpRequest) -> JsonResponse:  # noqa: ARG001 -- Django's signature
    """Say whether searches can be served: 200, also when something is degraded, or 503."""
    parts = checked_parts()
    states = {name: part.state for name, part in parts.items()}
    status = next((state for state in (State.FAILED, State.DEGRADED) if state in states.values()), State.OK)
    timed_out = [name for name, part in parts.items() if part.timed_out]
    body = {"status": status, "parts": states, **({"timed_out": timed_out} if timed_out else {})}
    return JsonResponse(body, status=503 if status is State.FAILED else 200)


def checked_parts() -> Mapping[str, Part]:
    """Return how each part is that searches need or use, after 0.7 s at the latest, whatever hangs."""
    for check in _CHECKS.values():
        check.begin()
    return {name: _bounded(name, check) for name, check in _CHECKS.items()}


def _bounded(name: str, check: BoundedCheck[Part]) -> Part:
    """Return how a part is, by a check that was begun; one that does not answer in time is as good as down."""
    try:
        return check.result(seconds=_PART_SECONDS)
    except TimeoutError:
        logger.warning("ready.timeout part=%s", name)
        state = State.FAILED if name in _REQUIRED else State.DEGRADED
        return Part(state, f"It did not answer within {_PART_SECONDS} s.", timed_out=True)


def _required(use: Callable[[], object]) -> Part:
    """Return whether a part that no search can do without can be used."""
    try:
        use()
    except Exception as error:  # noqa: BLE001 -- a part that fails in any way has failed
        logger.warning("ready.failed error=%s reason=%s", type(error).__name__, error)
        return Part(State.FAILED, str(error))
    return Part(State.OK)


def _encoder() -> object:
    return active.encoder()


def _reranker() -> Part:
    """Return whether the reranker can be used as far as is known; nothing is missing where none is configured."""
    try:
        reranker = runtime.reranker()
    except Exception as error:  # noqa: BLE001 -- a search falls back, whatever it is
        logger.warning("ready.degraded error=%s reason=%s", type(error).__name__, error)
        return Part(State.DEGRADED, str(error))
    problem = (reranker.problem or _left_alone(reranker)) if reranker is not None else ""
    return Part(State.DEGRADED if problem else State.OK, problem)


def _left_alone(reranker: Reranker) -> str:
    """Return that searches for evidence do not ask a reranker, as far as this process knows; else nothing."""
    is_open = runtime.rerank_guards.states.get(reranker.name) is BreakerState.OPEN
    return "It failed several times in a row; searches for evidence leave it alone for a while." if is_open else ""


def _language_models() -> Part:
    """Return whether every enabled language model answers, as it was last found; without one answers are quotes."""
    try:
        statuses = [(model.name, status_of(model)) for model in stored_models()]
    except Exception as error:  # noqa: BLE001 -- without a database nobody can tell, and that is another part
        return Part(State.DEGRADED, str(error))
    now = timezone.now()
    unwell = [f"{name} {status_words(it, now)}" for name, it in statuses if it.state not in _WELL]
    return Part(State.DEGRADED if unwell else State.OK, " ".join(unwell))


def _bm25() -> Part:
    """Return whether the BM25 index can be searched and follows the database; other legs search without it."""
    try:
        problem = bm25_status().problem
    except Exception as error:  # noqa: BLE001 -- without a database nobody can tell, and that is another part
        return Part(State.DEGRADED, str(error))
    return Part(State.DEGRADED if problem else State.OK, problem)


#: What no search can do without.
_REQUIRED: Final = frozenset({"database", "model"})
_CHECKS: Final[Mapping[str, BoundedCheck[Part]]] = {
    "database": BoundedCheck(lambda: _required(require_database)),
    "model": BoundedCheck(lambda: _required(_encoder)),
    "reranker": BoundedCheck(_reranker),
    "bm25": BoundedCheck(_bm25),
    "language_model": BoundedCheck(_language_models),
}
