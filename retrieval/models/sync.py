"""What a sync of a connection did, and the items it could not take in."""

import uuid
from typing import ClassVar

from django.db import models
from django.db.models import Q

from corecube.models import Connection


class Sync(models.Model):
    """One run over a connection's source."""

    class Status(models.TextChoices):
        """QUEUED waits for a worker; STOPPED was ended on purpose, by a person or a guard."""

        QUEUED = "queued"
        RUNNING = "running"
        DONE = "done"
        FAILED = "failed"
        STOPPED = "stopped"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    connection = models.ForeignKey(Connection, on_delete=models.CASCADE, related_name="syncs")
    status = models.CharField(max_length=10, choices=Status.choices, default=Status.QUEUED)
    #: A person said that more than the guarded share may be deleted.
    allow_deletions = models.BooleanField(default=False)
    queued_at = models.DateTimeField(auto_now_add=True)
    started_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)
    #: Items of the source: seen so far, and among them added, changed, unchanged, failed; and documents deleted.
    seen = models.PositiveIntegerField(default=0)
    added = models.PositiveIntegerField(default=0)
    changed = models.PositiveIntegerField(default=0)
    unchanged = models.PositiveIntegerField(default=0)
    failed = models.PositiveIntegerField(default=0)
    deleted = models.PositiveIntegerField(default=0)
    chunks = models.PositiveIntegerField(default=0)
    encode_seconds = models.FloatField(default=0.0)
    #: Why it failed or stopped, in words for an admin.
    message = models.TextField(blank=True)

    class Meta:
        ordering: ClassVar = ["-queued_at"]
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["connection", "allow_deletions"], condition=Q(status="queued"), name="one_queued_sync_of_a_kind"
            )
        ]

    def __str__(self) -> str:
        return f"{self.connection} {self.status}"

    @property
    def seconds(self) -> float:
        """Seconds from start to finish; 0 before it finished."""
        if self.started_at is None or self.finished_at is None:
            return 0.0
        return (self.finished_at - self.started_at).total_seconds()


class SyncProblem(models.Model):
    """An item that the last sync of its connection could not take in."""

    connection = models.ForeignKey(Connection, on_delete=models.CASCADE, related_name="problems")
    external_id = models.TextField()
    #: Stable word: empty, corrupt, encrypted, too_large, unsupported_type, unreadable ...
    reason = models.CharField(max_length=40)
    message = models.TextField()
    seen_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering: ClassVar = ["external_id"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["connection", "external_id"], name="one_problem_per_item")
        ]

    def __str__(self) -> str:
        return f"{self.external_id}: {self.reason}"
