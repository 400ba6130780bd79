"""The status of language models by the latest trials, checks and answers, stored with each model.

A model is ready from its first answer until it fails. Pages and the health check read the stored status and send no
requests.
"""

import logging
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from asgiref.sync import sync_to_async
from django.conf import settings
from django.db import DatabaseError, transaction
from django.db.models import Q, Value
from django.db.models.functions import Coalesce, Now
from django.utils import timezone
from django.utils.timesince import timesince

from corecube.database import release_connection
from corecube.errors import ConfigError
from retrieval import errors
from retrieval.llm.clients import service_of, stored_models, usable_client
from retrieval.llm.model_provider import RecordResult
from retrieval.llm.service import ModelService
from retrieval.llm.trial import Trial, probe, try_model
from retrieval.models import LanguageModel

logger = logging.getLogger(__name__)
#: Time limit of checks, also when a model is saved; the button *Test* waits for the model's full timeout.
_MAX_SECONDS: Final = 15.0
#: Minimum time between two updates for answers: in between nothing visible changes.
_UPDATE_INTERVAL: Final = timedelta(seconds=60)
#: Errors that do not mean that the model is unusable: a paused or busy model, a refused prompt.
_EXCUSED: Final = (errors.AnswerBreakerOpenError, errors.AnswerRateLimitedError, errors.AnswerRejectedError)
_PAUSED: Final = "It failed several times in a row and is paused for 30 seconds."


class ModelState(StrEnum):
    """The status of a language model."""

    READY = "ready"
    UNTRIED = "untried"
    FAILING = "failing"  #: The last request failed: no connection, a refused key, no such model.
    OFF = "off"
    KEY_LOST = "key_lost"


@dataclass(frozen=True, slots=True)
class ModelStatus:
    """The state of a language model with its dates."""

    state: ModelState
    since: datetime | None = None  #: The time of the last answer, or of the first failure; None if unknown.
    checked_at: datetime | None = None
    problem: str = ""  #: The reason of the failure, without anything that was sent or received.
    is_paused: bool = False  #: Whether its circuit breaker sends it no requests.


def status_of(model: LanguageModel) -> ModelStatus:
    """Return the known status of a stored model, without a request."""
    if not model.is_enabled:
        return ModelStatus(ModelState.OFF)
    client = usable_client(model)
    if client is None:
        return ModelStatus(ModelState.KEY_LOST, problem="Its stored key cannot be decrypted. Enter the key again.")
    if model.failing_since is not None:
        return ModelStatus(ModelState.FAILING, model.failing_since, model.checked_at, model.failure, client.is_paused)
    if client.is_paused:
        return ModelStatus(ModelState.FAILING, None, model.checked_at, _PAUSED, is_paused=True)
    if model.answered_at is None:
        return ModelStatus(ModelState.UNTRIED)
    return ModelStatus(ModelState.READY, model.answered_at, model.checked_at)


def status_words(status: ModelStatus, now: datetime) -> str:
    """Return a status as the rest of a sentence after the model's name: "answered 5 minutes ago."."""
    checked = f" Last check: {_ago(status.checked_at, now)}." if status.checked_at else ""
    match status.state:
        case ModelState.READY:
            return f"answered {_ago(status.since or now, now)}.{checked}"
        case ModelState.UNTRIED:
            return "has not been checked yet. A worker checks it soon."
        case ModelState.FAILING:
            duration = f" for {age}" if (age := _age(status.since, now)) else ""
            return f"has not answered{duration}: {status.problem}{checked}"
        case ModelState.OFF:
            return "is switched off."
        case ModelState.KEY_LOST:
            return f"cannot be used. {status.problem}"


def reset_status(model: LanguageModel) -> tuple[str, ...]:
    """Reset the status, after a change of address or key; return the fields to store."""
    model.answered_at = model.failing_since = model.checked_at = None
    model.failure = ""
    return ("answered_at", "failing_since", "checked_at", "failure")


def note(pk: int, error: errors.AnswerError | None) -> None:
    """Store a model's answer or failure."""
    rows = LanguageModel.objects.filter(pk=pk)
    if error is None:
        is_outdated = Q(answered_at=None) | Q(failing_since__isnull=False) | Q(answered_at__lt=Now() - _UPDATE_INTERVAL)
        rows.filter(is_outdated).update(answered_at=Now(), checked_at=Now(), failing_since=None, failure="")
    elif not isinstance(error, _EXCUSED):
        since = Coalesce("failing_since", Now())
        rows.update(failing_since=since, checked_at=Now(), failure=Value(str(error)))


def result_recorder(model: LanguageModel) -> RecordResult:
    """Return a function that stores the results of a model's answers; database errors are only logged."""

    def store(error: errors.AnswerError | None) -> None:
        try:
            with transaction.atomic():
                note(model.pk, error)
        except DatabaseError as lost:
            logger.warning("language_model.status_not_stored model=%s error=%s", model.slug, type(lost).__name__)
        release_connection()

    return sync_to_async(store)


def try_saved(model: LanguageModel, *, in_seconds: float | None = _MAX_SECONDS) -> Trial:
    """Request a short answer of a stored model, store and return the result; with None the model's timeout applies."""
    try:
        service = service_of(model)
    except ConfigError as error:
        return Trial(problem=str(error))
    # No database connection is used during the wait for the service.
    release_connection()
    trial = try_model(service if in_seconds is None else _limited(service, in_seconds))
    note(model.pk, trial.error)
    return trial


def check_due() -> int:
    """Check the enabled models without a request for `CORECUBE_LLM_CHECK_SECONDS`; return their number."""
    if not settings.CORECUBE_LLM_CHECK_SECONDS:
        return 0
    before = timezone.now() - timedelta(seconds=settings.CORECUBE_LLM_CHECK_SECONDS)
    due = [it for it in stored_models() if it.is_enabled and (it.checked_at is None or it.checked_at < before)]
    return sum(_checked(model, before) for model in due)


def _checked(model: LanguageModel, before: datetime) -> bool:
    due = LanguageModel.objects.filter(Q(checked_at=None) | Q(checked_at__lt=before), pk=model.pk)
    if not due.update(checked_at=Now()):
        return False
    state = status_of(model).state
    if state is ModelState.KEY_LOST:
        return False
    error = probe(_limited(service_of(model), _MAX_SECONDS))
    # A list of models is free, so an answer is only requested if the list is not enough.
    if error is None and state is ModelState.READY:
        return True
    if isinstance(error, errors.AnswerUnavailableError):
        note(model.pk, error)
    else:
        try_saved(model)
    model.refresh_from_db()
    logger.info("language_model.checked model=%s state=%s", model.slug, status_of(model).state)
    return True


def _ago(then: datetime, now: datetime) -> str:
    """Return a time relative to now: "just now", "5 minutes ago"."""
    return f"{age} ago" if (age := _age(then, now)) else "just now"


def _age(then: datetime | None, now: datetime) -> str:
    """Return the time since then in its largest unit: "5 minutes"; empty for less than a minute or None."""
    if then is None or now - then < timedelta(minutes=1):
        return ""
    return timesince(then, now, depth=1).replace("\N{NO-BREAK SPACE}", " ")


def _limited(service: ModelService, seconds: float) -> ModelService:
    return replace(
        service,
        timeout_seconds=min(service.timeout_seconds, seconds),
        silence_seconds=min(service.silence_seconds, seconds),
        max_retries=0,
    )
