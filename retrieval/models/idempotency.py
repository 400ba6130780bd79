"""Requests that carry an Idempotency-Key, so that sending one again does nothing again."""

from typing import ClassVar

from django.db import models


class IdempotentRequest(models.Model):
    """A request with its answer, for a day."""

    #: Whose the key is: "key UUID" or "user ID".
    owner = models.CharField(max_length=60)
    #: SHA-256 of the Idempotency-Key and of the operation that it was sent for.
    digest = models.CharField(max_length=64)
    #: SHA-256 of the request's body.
    fingerprint = models.CharField(max_length=64)
    at = models.DateTimeField(db_index=True)
    #: HTTP status of the answer; empty while the request is at work.
    status = models.PositiveSmallIntegerField(null=True)
    answer = models.JSONField(default=dict)

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["owner", "digest"], name="idempotency_key_once")]

    def __str__(self) -> str:
        return self.digest
