"""Jobs: the syncs of connections, their items and problems, and the worker processes."""

import uuid
from typing import ClassVar

from django.db import models
from django.db.models import Q

from corecube.models import Connection


class Sync(models.Model):
    """A sync of a connection."""

    class Status(models.TextChoices):
        """QUEUED waits for a worker; STOPPED was stopped by the deletion guard, CANCELLED by a user.

        CANCELLING becomes CANCELLED as soon as no process works on it.
        """

        QUEUED = "queued"
        RUNNING = "running"
        DONE = "done"
        FAILED = "failed"
        STOPPED = "stopped"
        CANCELLING = "cancelling"
        CANCELLED = "cancelled"

    OPEN: ClassVar = (Status.QUEUED, Status.RUNNING, Status.CANCELLING)

    class Kind(models.TextChoices):
        """FULL lists the source, CHANGES only its changes; RETRY processes failed items again, DRY_RUN only counts.

        A CHANGES sync becomes a FULL one if the changes are not enough.
        """

        FULL = "full"
        CHANGES = "changes"
        RETRY = "retry"
        DRY_RUN = "dry_run"

    class Stage(models.TextChoices):
        """The step of a running sync: LISTING its source, WORKING on the items, SETTLING counts and deletions."""

        LISTING = "listing"
        WORKING = "working"
        SETTLING = "settling"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    connection = models.ForeignKey(Connection, on_delete=models.CASCADE, related_name="syncs")
    status = models.CharField(max_length=10, choices=Status.choices, default=Status.QUEUED)
    kind = models.CharField(max_length=10, choices=Kind.choices, default=Kind.FULL, db_default=Kind.FULL)
    stage = models.CharField(max_length=10, choices=Stage.choices, blank=True, default="", db_default="")
    #: Only one process works on it, from start to end.
    is_private = models.BooleanField(default=False, db_default=False)
    #: A person confirmed the deletion of more than the guarded share.
    allow_deletions = models.BooleanField(default=False)
    queued_at = models.DateTimeField(auto_now_add=True)
    started_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)
    listed_at = models.DateTimeField(null=True)  #: When the listing of its source was complete.
    #: A digest of the connection's settings during a full listing.
    settings_mark = models.CharField(max_length=64, blank=True, default="", db_default="")
    heartbeat_at = models.DateTimeField(null=True)  #: The last heartbeat of a process that works on it.
    woken_at = models.DateTimeField(null=True)  #: When workers got the last message about it.
    #: Items of the source: seen so far, and among them added, changed, unchanged, failed; and documents deleted.
    seen = models.PositiveIntegerField(default=0)
    added = models.PositiveIntegerField(default=0)
    changed = models.PositiveIntegerField(default=0)
    unchanged = models.PositiveIntegerField(default=0)
    failed = models.PositiveIntegerField(default=0)
    deleted = models.PositiveIntegerField(default=0)
    chunks = models.PositiveIntegerField(default=0)
    encode_seconds = models.FloatField(default=0.0)
    #: Marks of its pace, for an estimate of the time left; see `retrieval.ingest.pace`.
    pace = models.JSONField(default=list, db_default=models.Value([], models.JSONField()))
    message = models.TextField(blank=True)  #: Why it failed or stopped, as a message for admins.

    class Meta:
        ordering: ClassVar = ["-queued_at"]
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["connection", "kind", "allow_deletions"],
                condition=Q(status="queued"),
                name="one_queued_sync_of_a_kind",
            ),
            models.UniqueConstraint(
                fields=["connection"],
                condition=Q(status__in=["running", "cancelling"]),
                name="one_running_sync_of_a_connection",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.connection} {self.status}"

    @property
    def label(self) -> str:
        """Its status in words, with the number of items that could not be indexed."""
        if self.status != self.Status.DONE or not self.failed:
            return self.status
        if self.kind == self.Kind.DRY_RUN:
            return f"{self.status}, {self.failed} cannot be indexed"
        return f"{self.status} with {self.failed} problem{'' if self.failed == 1 else 's'}"

    @property
    def seconds(self) -> float:
        """Seconds from start to finish; 0 for an unfinished sync."""
        if self.started_at is None or self.finished_at is None:
            return 0.0
        return (self.finished_at - self.started_at).total_seconds()


class SyncItem(models.Model):
    """An item of a source that a sync indexes or deletes, with its state.

    Items that are done are deleted when the sync ends; failed ones stay until the next full sync, for another try.
    """

    class State(models.TextChoices):
        """QUEUED can be claimed (from `next_try_at` on), RUNNING is claimed; GONE is to be deleted."""

        QUEUED = "queued"
        RUNNING = "running"
        DONE = "done"
        FAILED = "failed"
        GONE = "gone"

    class Stage(models.TextChoices):
        PARSING = "parsing"
        EMBEDDING = "embedding"
        STORING = "storing"

    class Outcome(models.TextChoices):
        ADDED = "added"
        CHANGED = "changed"
        UNCHANGED = "unchanged"

    sync = models.ForeignKey(Sync, on_delete=models.CASCADE, related_name="items", db_index=False)
    document_id = models.UUIDField()
    external_id = models.TextField()
    #: The item as listed by its connector; empty if it could not be listed or is gone.
    item = models.JSONField(default=dict)
    state = models.CharField(max_length=10, choices=State.choices, default=State.QUEUED)
    stage = models.CharField(max_length=10, choices=Stage.choices, blank=True, default="")
    outcome = models.CharField(max_length=10, choices=Outcome.choices, blank=True, default="")
    #: Number of chunks, once it is parsed, and how many of these have vectors.
    chunks = models.PositiveIntegerField(default=0)
    embedded = models.PositiveIntegerField(default=0, db_default=0)
    attempts = models.PositiveSmallIntegerField(default=0)
    #: Why it failed, or why it waits for another try: a stable reason and a sentence.
    reason = models.CharField(max_length=40, blank=True, default="")
    message = models.TextField(blank=True, default="")
    next_try_at = models.DateTimeField(null=True)
    worker = models.UUIDField(null=True)  #: The worker that has claimed it, and its last heartbeat.
    heartbeat_at = models.DateTimeField(null=True)

    class Meta:
        ordering: ClassVar = ["pk"]
        constraints: ClassVar = [models.UniqueConstraint(fields=["sync", "document_id"], name="one_item_of_a_sync")]
        indexes: ClassVar = [
            models.Index(fields=["sync", "state", "id"], name="sync_item_by_state"),
            models.Index(fields=["document_id"], name="sync_item_by_document"),
            models.Index(fields=["worker"], condition=Q(state="running"), name="sync_item_by_worker"),
        ]

    def __str__(self) -> str:
        return f"{self.external_id} {self.state}"


class SyncProblem(models.Model):
    """An item that could not be indexed at its last try; it is listed until it is indexed or gone.

    The failures of a running sync are listed at once. Dry runs list none.
    """

    connection = models.ForeignKey(Connection, on_delete=models.CASCADE, related_name="problems")
    external_id = models.TextField()
    #: Stable reason: empty, corrupt, encrypted, too_large, unsupported_type, unreadable ...
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


class Worker(models.Model):
    """A worker's main process and its last heartbeat; a worker that shuts down normally deletes its row."""

    host = models.CharField(max_length=255)
    pid = models.PositiveIntegerField()
    started_at = models.DateTimeField()
    seen_at = models.DateTimeField()

    class Meta:
        ordering: ClassVar = ["host", "pid"]
        constraints: ClassVar = [models.UniqueConstraint(fields=["host", "pid"], name="one_row_per_worker")]

    def __str__(self) -> str:
        return f"{self.host}:{self.pid}"
