"""The Idempotency-Key header: a request that is sent again within a day is answered as it was the first time."""

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

KEPT: Final = timedelta(hours=24)
#: After this a request that never ended counts as lost with its process.
_LOST: Final = timedelta(minutes=5)

IdempotencyKey = Annotated[
    str,
    Header(
        alias="Idempotency-Key",
        max_length=255,
        description="Sent again within 24 hours with the same body, nothing is done and the answer is the same.",
    ),
]


class IdempotencyKeyReusedError(InvalidRequestError):
    """The Idempotency-Key was sent before with another request."""

    code: ClassVar[str] = "idempotency_key_reused"
    param: ClassVar[str] = "Idempotency-Key"


class IdempotencyConflictError(ConflictError):
    """A request with this Idempotency-Key is at work; send it again in a moment."""

    code: ClassVar[str] = "idempotency_key_in_use"
    param: ClassVar[str] = "Idempotency-Key"


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer that can be kept, and whether it is an earlier one."""

    status: int
    body: Mapping[str, Any]
    replayed: bool = False


def once(key: str, *, principal: Principal, operation: str, body: BaseModel, work: Callable[[], Answer]) -> Answer:
    """Do the work unless the key was sent before, and return its answer or the earlier one.

    Without a key the work is simply done. When it raises, nothing is kept, and the key may be sent again. Raises
    IdempotencyKeyReusedError for another body, IdempotencyConflictError while the first request is at work.
    """
    if not key:
        return work()
    owner = f"key {principal.key.pk}" if principal.key else f"user {principal.user.pk}"
    # Of a key that acts for somebody, each of them has keys of their own.
    digest = _digest(operation, str(principal.user.pk), key)
    fingerprint = _digest(json.dumps(body.model_dump(mode="json"), sort_keys=True))
    earlier = _claim(owner, digest, fingerprint)
    if earlier is not None:
        return earlier
    own = IdempotentRequest.objects.filter(owner=owner, digest=digest)
    try:
        answer = work()
    except BaseException:
        own.delete()
        raise
    own.update(status=answer.status, answer=answer.body)
    return answer


def _digest(*parts: str) -> str:
    return hashlib.sha256("\n".join(parts).encode("utf-8", "surrogatepass")).hexdigest()


def _claim(owner: str, digest: str, fingerprint: str) -> Answer | None:
    """Take the key for a request, and return None; return the answer of the request that had it before."""
    now = timezone.now()
    forget_old()
    rows = IdempotentRequest.objects.filter(owner=owner, digest=digest)
    rows.filter(status__isnull=True, at__lt=now - _LOST).delete()
    try:
        # What it adds is seen by others before the work begins.
        with transaction.atomic():
            IdempotentRequest.objects.create(owner=owner, digest=digest, fingerprint=fingerprint, at=now)
    except IntegrityError:
        return _earlier(rows.first(), fingerprint)
    return None


def _earlier(row: IdempotentRequest | None, fingerprint: str) -> Answer:
    if row is not None and row.fingerprint != fingerprint:
        raise IdempotencyKeyReusedError
    if row is None or row.status is None:
        raise IdempotencyConflictError
    return Answer(row.status, row.answer, replayed=True)


def forget_old() -> None:
    """Delete what is older than a day."""
    IdempotentRequest.objects.filter(at__lt=timezone.now() - KEPT).delete()
