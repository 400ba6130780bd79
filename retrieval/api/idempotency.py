"""The Idempotency-Key header: a request repeated within 24 hours gets the response of the first one."""

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated, Any, ClassVar, Final

from django.db import IntegrityError, transaction
from django.utils import timezone
from ninja import Header
from pydantic import BaseModel

from corecube.access import Principal
from corecube.errors import ConflictError, InvalidRequestError
from retrieval.models import IdempotentRequest

_RETENTION: Final = timedelta(hours=24)
_LOST: Final = timedelta(minutes=5)  #: After this time a request without a response counts as lost with its process.

IdempotencyKey = Annotated[
    str,
    Header(
        alias="Idempotency-Key",
        max_length=255,
        description="A repeated request with the same body within 24 hours changes nothing and gets the same response.",
    ),
]


class IdempotencyKeyReusedError(InvalidRequestError, code="idempotency_key_reused"):
    """The Idempotency-Key was used before with another request."""

    param: ClassVar[str] = "Idempotency-Key"


class IdempotencyConflictError(ConflictError, code="idempotency_key_in_use"):
    """A request with this Idempotency-Key is still running. Try again in a moment."""

    param: ClassVar[str] = "Idempotency-Key"


@dataclass(frozen=True, slots=True)
class Answer:
    """A response to store, and whether it is a stored one."""

    status: int
    body: Mapping[str, Any]
    replayed: bool = False


def once(key: str, *, principal: Principal, operation: str, body: BaseModel, work: Callable[[], Answer]) -> Answer:
    """Do the work unless the key was used before, and return its response or the stored one.

    Without a key the work is always done. If it raises, nothing is stored, and the key can be used again. Raises
    IdempotencyKeyReusedError for another body, IdempotencyConflictError while the first request is running.
    """
    if not key:
        return work()
    owner = f"key {principal.key.pk}" if principal.key else f"user {principal.user.pk}"
    # For an API key that acts for other users, each of them has separate idempotency keys.
    digest = _digest(operation, str(principal.user.pk), key)
    fingerprint = _digest(json.dumps(body.model_dump(mode="json"), sort_keys=True))
    earlier = _claim(owner, digest, fingerprint)
    if earlier is not None:
        return earlier
    claim = IdempotentRequest.objects.filter(owner=owner, digest=digest)
    try:
        answer = work()
    except BaseException:
        claim.delete()
        raise
    claim.update(status=answer.status, answer=answer.body)
    return answer


def _digest(*parts: str) -> str:
    return hashlib.sha256("\n".join(parts).encode("utf-8", "surrogatepass")).hexdigest()


def _claim(owner: str, digest: str, fingerprint: str) -> Answer | None:
    """Claim the key for a request and return None, or return the response of the request that claimed it before."""
    now = timezone.now()
    IdempotentRequest.objects.filter(at__lt=now - _RETENTION).delete()
    rows = IdempotentRequest.objects.filter(owner=owner, digest=digest)
    rows.filter(status__isnull=True, at__lt=now - _LOST).delete()
    try:
        # The row is visible to other requests before the work begins.
        with transaction.atomic():
            IdempotentRequest.objects.create(owner=owner, digest=digest, fingerprint=fingerprint, at=now)
    except IntegrityError:
        row = rows.first()
        if row is not None and row.fingerprint != fingerprint:
            raise IdempotencyKeyReusedError from None
        if row is None or row.status is None:
            raise IdempotencyConflictError from None
        return Answer(row.status, row.answer, replayed=True)
    return None
