"""The records of searches, queued searches, and requests with an Idempotency-Key."""

import uuid
from collections.abc import Mapping
from typing import Any, ClassVar, Final, Self

from django.conf import settings
from django.db import models
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import F, Func, Q
from django.db.models.lookups import Contains
from django.db.models.sql.compiler import SQLCompiler
from django.dispatch import Signal

from corecube.models import User
from retrieval.models.experiment import Experiment

#: Filters of the log that do not depend on the viewer; each has an index.
FLAGS: Final[Mapping[str, Q]] = {
    "refused": Q(is_refused=True),
    # Less confident than answerable.
    "unsure": Q(verdict__in=("not_answerable", "partial")),
    "disliked": Q(feedback=-1),
    "degraded": ~Q(degraded=[]),
    "empty": Q(hit_count=0),
}


@models.TextField.register_lookup
class InAnyCase(Contains):
    """Contains a text in any case, with ILIKE: the planner cannot estimate the rows of Django's `icontains`."""

    lookup_name = "in_any_case"

    def as_sql(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper) -> tuple[str, list[Any]]:
        """Return the condition."""
        column, column_parameters = self.process_lhs(compiler, connection)
        text, parameters = self.process_rhs(compiler, connection)
        return f"{column} ILIKE {text}", [*column_parameters, *parameters]


class CurrentTransaction(Func):
    """The id of the transaction that writes the row, as in `retrieval_outboxentry`."""

    template = "pg_current_xact_id()::text::bigint"
    output_field = models.BigIntegerField()


class SearchRecordQuerySet(models.QuerySet["SearchRecord"]):
    """Queries by owner."""

    def visible_to(self, viewer: User) -> Self:
        """Return the records that a user may read: all for admins, else their own searches."""
        return self if viewer.is_admin else self.filter(user=viewer, for_another=False)

    def own(self, person: User) -> Self:
        """Return a user's searches, as themselves or as another user."""
        return self.filter(Q(user=person, for_another=False) | Q(actor=person))

    def asked(self) -> Self:
        """Return what people asked by themselves in the chat, through the API or an agent: no trials in the console."""
        surfaces = (SearchRecord.Surface.CHAT, SearchRecord.Surface.API, SearchRecord.Surface.AGENT)
        return self.filter(surface__in=surfaces, for_another=False).exclude(query="")

    def unanswered(self) -> Self:
        """Return what people asked and got no answer to: refusals, and answers of low confidence that nobody liked."""
        return self.asked().filter(FLAGS["refused"] | FLAGS["unsure"]).exclude(feedback=1)

    def mark_refused(self, record_id: uuid.UUID) -> None:
        """Store that the answer to a search was a refusal."""
        self.filter(pk=record_id).update(is_refused=True)


#: Sent before records are read: those that this process has not written yet must be there.
reading_records: Final = Signal()


class SearchRecordManager(models.Manager.from_queryset(SearchRecordQuerySet)):  # type: ignore[misc]  # made at run time
    """Reads what is stored, with what this process still has to write."""

    def get_queryset(self) -> SearchRecordQuerySet:
        """Return all records."""
        reading_records.send(sender=None)
        found: SearchRecordQuerySet = super().get_queryset()
        return found


class SearchRecord(models.Model):
    """A search and its trace: chunk ids and scores, no document text."""

    class Surface(models.TextChoices):
        EXPLORER = "explorer"
        API = "api"
        CHAT = "chat"
        COMMAND = "command"
        AGENT = "agent"
        EVIDENCE = "evidence"  #: A section of a report.

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    at = models.DateTimeField(auto_now_add=True)
    #: Documents with a higher one in the outbox changed after the search; None for old searches without it.
    transaction_id = models.BigIntegerField(null=True, editable=False, db_default=CurrentTransaction())
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="searches", db_index=False
    )
    #: The admin who searched as `user`; empty for the user's own searches.
    actor = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="searches_as_others"
    )
    #: Whether an admin searched as the user; stays if the admin's account is deleted.
    for_another = models.BooleanField(default=False, db_default=False)
    key = models.ForeignKey("corecube.ApiKey", null=True, on_delete=models.SET_NULL, related_name="searches")
    surface = models.CharField(max_length=10, choices=Surface, default=Surface.API, db_default=Surface.API)
    #: The experiment that it was a question of.
    experiment = models.ForeignKey(
        Experiment, null=True, on_delete=models.SET_NULL, related_name="records", db_index=False
    )
    preset = models.CharField(max_length=40)
    preset_version = models.CharField(max_length=64)  #: SHA-256 of the preset's stages and configuration.
    query = models.TextField(blank=True)  #: Empty if CORECUBE_KEEP_QUERY_TEXT is off.
    top_k = models.PositiveSmallIntegerField(default=10, db_default=10)
    connection_ids = models.JSONField(default=list)
    milliseconds = models.FloatField()
    hit_count = models.PositiveIntegerField()
    degraded = models.JSONField(default=list)
    #: Whether it ran with the preset's settings, without overrides, a draft or a shorter deadline: only such searches
    #: count in the statistics of compartments.
    is_ordinary = models.BooleanField(default=False, db_default=False)
    #: Whether it was answerable (`retrieval.engine.types.Verdict`), with the confidence; empty if not computed.
    verdict = models.CharField(max_length=20, blank=True, default="", db_default="")
    confidence = models.FloatField(null=True)
    is_refused = models.BooleanField(default=False, db_default=False)
    feedback = models.SmallIntegerField(null=True)  #: The user's rating of the answer: 1 or -1; empty for none.
    #: {"spans": [...], "hits": [...], "passages": [...]}; the configuration:
    #: {"version": 3, "is_draft": false, "overrides": {"blend.dense": 0.5}}; and the request, the settings and the
    #: embedding index. Of an experiment also {"interleaving": {"seed": 7, "a": "corecube 1", "b": "corecube 2",
    #: "teams": [[chunk, hash of its text, "A"], ...]}}, without teams where it is not counted.
    trace = models.JSONField(default=dict)

    objects = SearchRecordManager()

    class Meta:
        ordering: ClassVar = ["-at", "-id"]
        indexes: ClassVar = [
            models.Index(F("at").desc(), F("id").desc(), name="search_by_time"),
            models.Index(F("user").asc(), F("at").desc(), F("id").desc(), name="search_by_user"),
            models.Index(fields=["milliseconds"], name="search_by_duration"),
            models.Index(fields=["experiment"], condition=Q(experiment__isnull=False), name="search_by_experiment"),
            *(
                models.Index(F("at").desc(), F("id").desc(), condition=condition, name=f"search_{name}")
                for name, condition in {**FLAGS, "rated": Q(feedback__isnull=False)}.items()
            ),
        ]

    def __str__(self) -> str:
        return str(self.id)


class QueuedSearch(models.Model):
    """A search that a worker runs with query variants of a language model, and its result."""

    class Status(models.TextChoices):
        QUEUED = "queued"
        RUNNING = "running"
        DONE = "done"
        FAILED = "failed"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    at = models.DateTimeField(auto_now_add=True)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="queued_searches")
    #: The admin who searches as `user`; empty for the user's own searches.
    actor = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.CASCADE, related_name="queued_searches_as_others"
    )
    key = models.ForeignKey("corecube.ApiKey", null=True, on_delete=models.CASCADE, related_name="queued_searches")
    #: The query, until the search ran; then the search record has it, if query texts are stored.
    text = models.TextField(blank=True)
    #: The other parameters, until then: {"top_k", "include", "exclude", "overrides", "filter", "surface"}.
    request = models.JSONField(default=dict)
    status = models.CharField(max_length=10, choices=Status, default=Status.QUEUED)
    started_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)
    #: The query variants of the language model; empty if query texts are not stored.
    variants = models.JSONField(default=list)
    record_id = models.UUIDField(null=True)  #: The record of the search once it ran.
    code = models.CharField(max_length=40, blank=True, default="")  #: Why it failed: a code and a sentence.
    message = models.TextField(blank=True, default="")

    class Meta:
        verbose_name_plural = "queued searches"
        ordering: ClassVar = ["-at"]
        indexes: ClassVar = [models.Index(fields=["status", "at"], name="queued_search_by_status")]

    def __str__(self) -> str:
        return f"{self.id} ({self.status})"


class IdempotentRequest(models.Model):
    """A request with an Idempotency-Key and its response, stored for a day."""

    owner = models.CharField(max_length=60)  #: Owner of the key: "key UUID" or "user ID".
    digest = models.CharField(max_length=64)  #: SHA-256 of the Idempotency-Key and of its operation.
    fingerprint = models.CharField(max_length=64)  #: SHA-256 of the request's body.
    at = models.DateTimeField(db_index=True)
    #: HTTP status of the response; empty while the request is running.
    status = models.PositiveSmallIntegerField(null=True)
    answer = models.JSONField(default=dict)

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["owner", "digest"], name="idempotency_key_once")]

    def __str__(self) -> str:
        return self.digest
