"""Whether language models answer: as trials, checks and answers last found it, stored with each model.

A model is ready once it answered, and until it fails. Pages and health read what is stored; they ask no service.
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
from retrieval.errors import (
    AnswerBreakerOpenError,
    AnswerError,
    AnswerRateLimitedError,
    AnswerRejectedError,
    AnswerUnavailableError,
)
from retrieval.llm.clients import service_of, usable_client
from retrieval.llm.environment import stored_models
from retrieval.llm.model_provider import Hear
from retrieval.llm.service import ModelService
from retrieval.llm.trial import Trial, probe, try_model
from retrieval.models import LanguageModel

logger = logging.getLogger(__name__)

#: What saving and checking wait for an answer; a person who presses *Test* waits as long as an answer may take.
_MAX_SECONDS: Final = 15.0
#: An answer is noted again after this time; in between it changes nothing that anybody sees.
_NOTED_EVERY: Final = timedelta(seconds=60)
#: What says nothing of whether the model can be used: it was not asked, it is busy, or the prompt was refused.
_EXCUSED: Final = (AnswerBreakerOpenError, AnswerRateLimitedError, AnswerRejectedError)
_LEFT_ALONE: Final = "It failed several times in a row and is not asked for half a minute."


class ModelState(StrEnum):
    """Whether a language model can be used."""

    READY = "ready"
    #: Nothing has been asked of it since it was set up.
    UNTRIED = "untried"
    #: The last request failed: no connection, a refused key, no such model.
    FAILING = "failing"
    OFF = "off"
    #: The stored key cannot be opened.
    KEY_LOST = "key_lost"


@dataclass(frozen=True, slots=True)
class ModelStatus:
    """The state of one language model, and since when."""

    state: ModelState
    #: When it last answered, or since when it fails; None where nobody knows.
    since: datetime | None = None
    #: When it was last asked or checked.
    checked_at: datetime | None = None
    #: Why it fails, as a sentence without anything that was sent or received.
    problem: str = ""


def status_of(model: LanguageModel) -> ModelStatus:
    """Return whether a stored model can be used, as far as is known; no service is asked."""
    if not model.is_enabled:
        return ModelStatus(ModelState.OFF)
    client = usable_client(model)
    if client is None:
        return ModelStatus(ModelState.KEY_LOST, problem="Its stored key cannot be opened; enter it again.")
    if model.failing_since is not None:
        return ModelStatus(ModelState.FAILING, model.failing_since, model.checked_at, model.failure)
    if client.is_left_alone:
        return ModelStatus(ModelState.FAILING, None, model.checked_at, _LEFT_ALONE)
    if model.answered_at is None:
        return ModelStatus(ModelState.UNTRIED)
    return ModelStatus(ModelState.READY, model.answered_at, model.checked_at)


def status_words(status: ModelStatus, now: datetime) -> str:
    """Return a state as the rest of a sentence that begins with the model's name: "answered 5 minutes ago."."""
    checked = f" It was last checked {_ago(status.checked_at, now)}." if status.checked_at else ""
    match status.state:
        case ModelState.READY:
            return f"answered {_ago(status.since or now, now)}.{checked}"
        case ModelState.UNTRIED:
            return "has not been tried yet; a worker checks it soon."
        case ModelState.FAILING:
            duration = f" for {age}" if (age := _age(status.since, now)) else ""
            return f"has not answered{duration}: {status.problem}{checked}"
        case ModelState.OFF:
            return "is switched off."
        case ModelState.KEY_LOST:
            return f"cannot be asked. {status.problem}"


def forget_status(model: LanguageModel) -> tuple[str, ...]:
    """Make a model untried, as one at another address or with another key is; return the fields to store."""
    model.answered_at = model.failing_since = model.checked_at = None
    model.failure = ""
    return ("answered_at", "failing_since", "checked_at", "failure")


def note(pk: int, error: AnswerError | None) -> None:
    """Store that a model answered, or that it failed."""
    rows = LanguageModel.objects.filter(pk=pk)
    if error is None:
        news = Q(answered_at=None) | Q(failing_since__isnull=False) | Q(answered_at__lt=Now() - _NOTED_EVERY)
        rows.filter(news).update(answered_at=Now(), checked_at=Now(), failing_since=None, failure="")
    elif not isinstance(error, _EXCUSED):
        since = Coalesce("failing_since", Now())
        rows.update(failing_since=since, checked_at=Now(), failure=Value(str(error)))


def hearer(model: LanguageModel) -> Hear:
    """Return what notes how a model's answers end. Where the database does not answer, nothing is noted."""

    def store(error: AnswerError | None) -> None:
        try:
            with transaction.atomic():
                note(model.pk, error)
        except DatabaseError as lost:
            logger.warning("language_model.status_lost model=%s error=%s", model.slug, type(lost).__name__)
        release_connection()

    async def hear(error: AnswerError | None) -> None:
        await sync_to_async(store)(error)

    return hear


def try_saved(model: LanguageModel, *, in_seconds: float | None = _MAX_SECONDS) -> Trial:
    """Ask a stored model for one short answer, note what came of it and return it; None waits as an answer does."""
    try:
        service = service_of(model)
    except ConfigError as error:
        return Trial(problem=str(error))
    # No database connection is held while a service is waited for.
    release_connection()
    trial = try_model(service if in_seconds is None else _hurried(service, in_seconds))
    note(model.pk, trial.error)
    return trial


def check_due() -> int:
    """Check the enabled models that were not asked for `CORECUBE_LLM_CHECK_SECONDS`; return how many those were."""
    if not settings.CORECUBE_LLM_CHECK_SECONDS:
        return 0
    before = timezone.now() - timedelta(seconds=settings.CORECUBE_LLM_CHECK_SECONDS)
    due = [it for it in stored_models() if it.is_enabled and (it.checked_at is None or it.checked_at < before)]
    return sum(_checked(model, before) for model in due)


def _checked(model: LanguageModel, before: datetime) -> bool:
    """Check a model unless another process does; return whether it was checked."""
    mine = LanguageModel.objects.filter(Q(checked_at=None) | Q(checked_at__lt=before), pk=model.pk)
    if not mine.update(checked_at=Now()):
        return False
    state = status_of(model).state
    if state is ModelState.KEY_LOST:
        return False
    error = probe(_hurried(service_of(model), _MAX_SECONDS))
    # A list of models costs nothing, so an answer is asked for only where the list does not tell enough.
    if error is None and state is ModelState.READY:
        return True
    if isinstance(error, AnswerUnavailableError):
        note(model.pk, error)
    else:
        try_saved(model)
    model.refresh_from_db()
    logger.info("language_model.checked model=%s state=%s", model.slug, status_of(model).state)
    return True


def _ago(then: datetime, now: datetime) -> str:
    """Return a moment by its distance: "just now", "5 minutes ago"."""
    return f"{age} ago" if (age := _age(then, now)) else "just now"


def _age(then: datetime | None, now: datetime) -> str:
    """Return how long ago a moment was, in its largest unit: "5 minutes"; empty for under a minute or no moment."""
    if then is None or now - then < timedelta(minutes=1):
        return ""
    return timesince(then, now, depth=1).replace("\N{NO-BREAK SPACE}", " ")


def _hurried(service: ModelService, seconds: float) -> ModelService:
    return replace(
        service,
        timeout_seconds=min(service.timeout_seconds, seconds),
        silence_seconds=min(service.silence_seconds, seconds),
        max_retries=0,
    )
