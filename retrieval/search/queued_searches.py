"""Searches in the slower tier: requested, run by a worker with rephrasings and a slower reranker, and fetched.

The rows are the queue. A language model is called here, before the search, and never within it; what it may be
sent is decided again when its turn comes.
"""

import logging
from dataclasses import replace
from datetime import timedelta
from typing import Final
from uuid import UUID

from django.conf import settings
from django.db.models import Q
from django.utils import timezone

from corecube.access import Principal, ScopeRequest, scope_for
from corecube.database import each_taken, first_or
from corecube.errors import ConflictError, CoreCubeError, InvalidRequestError, NotFoundError, NotPermittedError
from corecube.models import ApiKey
from retrieval.engine.pipeline import HYBRID
from retrieval.engine.stored_filter import FullFilter, filter_json, filter_of
from retrieval.errors import NoLanguageModelError
from retrieval.llm.expansion import expander, variants_of
from retrieval.llm.model_provider import ModelProvider
from retrieval.models import QueuedSearch, SearchRecord
from retrieval.presets.catalog import preset_named
from retrieval.search import runtime
from retrieval.search.configuration import configuration_of
from retrieval.search.outcome import SearchOutcome
from retrieval.search.request import SearchRequest, checked_query
from retrieval.search.service import search

logger = logging.getLogger(__name__)

PRESET: Final = "helix"
_MAX_OPEN: Final = 20  #: Searches of one person that wait or run, at most.
#: A worker that says nothing for so long is lost; another one runs its search again.
_LOST: Final = timedelta(minutes=5)
#: How long a search is taken up again whose workers are lost; one that ends its worker would go on for ever, and cost.
_TRIED: Final = timedelta(minutes=15)
_KEPT: Final = timedelta(days=7)  #: Retention of results; the record of a search may be stored longer.
_Status = QueuedSearch.Status
_OPEN: Final = (_Status.QUEUED, _Status.RUNNING)


def queue_search(request: SearchRequest, *, principal: Principal) -> QueuedSearch:
    """Store a search to be run, and return it; the caller wakes a worker.

    Raises NoLanguageModelError where no language model may be used and nothing reranks, InvalidRequestError for another
    preset or for what this tier has not, ConflictError for too many that wait, and what `search` raises of the request.
    """
    text, preset = checked_query(request.text), preset_named(request.preset)
    if preset.base != PRESET or request.mode != HYBRID or request.draft:
        raise InvalidRequestError(f"This tier supports only the live preset {PRESET!r} and its reference version.")
    if not principal.may_use(preset.name):
        raise NotPermittedError("This API key may not use that preset.")
    preset.defaults.with_overrides(request.overrides)
    _expander(request, principal)
    own = QueuedSearch.objects.filter(user=principal.user, status__in=_OPEN)
    if own.count() >= _MAX_OPEN:
        raise ConflictError(f"You already have {_MAX_OPEN} queued searches.")
    asked = {
        "preset": preset.name,
        "top_k": request.top_k,
        "include": list(request.narrowing.include),
        "exclude": list(request.narrowing.exclude),
        "overrides": dict(request.overrides),
        "filter": filter_json(FullFilter(request.filter, request.conditions)),
        "surface": request.surface.value,
    }
    return QueuedSearch.objects.create(
        user=principal.user, actor=principal.actor, key=principal.key, text=text, request=asked
    )


def run_queued() -> int:
    """Run the searches that wait, one after the other, and return how many there were."""
    ran = 0
    for job in each_taken(QueuedSearch.objects.filter(status=_Status.QUEUED).order_by("at"), _take):
        _run(job)
        ran += 1
    return ran


def _take(job: QueuedSearch) -> None:
    job.status, job.started_at = _Status.RUNNING, timezone.now()
    job.save(update_fields=["status", "started_at"])


def queued_of(search_id: UUID, principal: Principal) -> QueuedSearch:
    """Return a principal's queued search; raise NotFoundError for one that is not theirs."""
    found = QueuedSearch.objects.filter(pk=search_id, user=principal.user, actor=principal.actor)
    return first_or(NotFoundError("You have no queued search with that id."), found)


def take_up_lost() -> None:
    """Let searches wait again whose worker was lost, and end those that were requested a while ago."""
    now = timezone.now()
    lost = QueuedSearch.objects.filter(status=_Status.RUNNING, started_at__lt=now - _LOST)
    message = "It was started several times and did not finish."
    lost.filter(at__lt=now - _TRIED).update(
        status=_Status.FAILED, finished_at=now, text="", request={}, code="worker_lost", message=message
    )
    lost.update(status=_Status.QUEUED)


def are_waiting() -> bool:
    """Return whether searches wait for a worker."""
    return QueuedSearch.objects.filter(status=_Status.QUEUED).exists()


def forget_finished() -> int:
    """Delete searches that ended a week ago and return how many; their records are stored as long as all others."""
    old = Q(finished_at__lt=timezone.now() - _KEPT)
    return QueuedSearch.objects.filter(old).delete()[0]


def _run(job: QueuedSearch) -> None:
    try:
        outcome, variants = _searched(job)
    except (CoreCubeError, TimeoutError) as error:
        code = error.code if isinstance(error, CoreCubeError) else "answer_timeout"
        message = str(error) if isinstance(error, CoreCubeError) else "The language model took too long."
        _ended(job, status=_Status.FAILED, code=code, message=message)
        logger.info("queued_search.failed id=%s code=%s", job.pk, code)
    except Exception:
        _ended(job, status=_Status.FAILED, code=CoreCubeError.code, message=str(CoreCubeError()))
        logger.exception("queued_search.broken id=%s", job.pk)
    else:
        kept = list(variants) if settings.CORECUBE_KEEP_QUERY_TEXT else []
        _ended(job, status=_Status.DONE, record_id=outcome.record_id, variants=kept)
        logger.info("queued_search.done id=%s variants=%d", job.pk, len(variants))


def _searched(job: QueuedSearch) -> tuple[SearchOutcome, tuple[str, ...]]:
    asked = job.request
    # Those that were queued before filters and presets were stored have none.
    limits = filter_of(asked.get("filter", {}))
    if not job.user.is_active or (job.actor is not None and not job.actor.is_admin):
        raise NotPermittedError("The user of this search no longer has access.")
    if job.key_id is not None and not ApiKey.objects.usable().filter(pk=job.key_id).exists():
        raise NotPermittedError("The API key of this search can no longer be used.")
    principal = Principal(job.user, job.key, job.actor)
    request = SearchRequest(
        text=job.text,
        preset=asked.get("preset", PRESET),
        top_k=asked["top_k"],
        narrowing=ScopeRequest(tuple(asked["include"]), tuple(asked["exclude"])),
        filter=limits.filter,
        conditions=limits.conditions,
        overrides=asked["overrides"],
        surface=SearchRecord.Surface(asked["surface"]),
        is_queued=True,
    )
    provider = _expander(request, principal)
    variants = variants_of(job.text, provider) if provider else ()
    return search(replace(request, variants=variants), principal=principal), variants


def _expander(request: SearchRequest, principal: Principal) -> ModelProvider | None:
    """Return the language model for rephrasings; None without one where the search is reranked in this tier.

    Raises NoLanguageModelError without either.
    """
    try:
        return expander(principal, scope_for(principal, request.narrowing))
    except NoLanguageModelError:
        config = configuration_of(preset_named(request.preset), overrides=request.overrides).config
        if not config.queued_seconds or runtime.reranker() is None:
            raise
        return None


def _ended(job: QueuedSearch, **changes: object) -> None:
    """Store how a search ended and delete its query, which is in its record if queries are stored."""
    QueuedSearch.objects.filter(pk=job.pk).update(text="", request={}, finished_at=timezone.now(), **changes)
