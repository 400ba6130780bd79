"""The record of every search: who asked, with what, and what each stage did."""

import uuid
from collections.abc import Mapping
from typing import Any, ClassVar, Final, Self

from django.conf import settings
from django.db import models
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import F, Func, Q
from django.db.models.lookups import Contains
from django.db.models.sql.compiler import SQLCompiler

from corecube.models import User


@models.TextField.register_lookup
class InAnyCase(Contains):
    """Holds a text, whatever its case: as `icontains`, of whose form the planner cannot tell how many rows match."""

    lookup_name = "in_any_case"

    def as_sql(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper) -> tuple[str, list[Any]]:
        """Return the condition."""
        held, held_parameters = self.process_lhs(compiler, connection)
        text, parameters = self.process_rhs(compiler, connection)
        return f"{held} ILIKE {text}", [*held_parameters, *parameters]


class CurrentTransaction(Func):
    """The id of the transaction that writes the row, as `retrieval_outboxentry` has it."""

    template = "pg_current_xact_id()::text::bigint"
    output_field = models.BigIntegerField()


#: What the log is filtered by, where it is the same for everybody; each has an index of its own.
FLAGS: Final[Mapping[str, Q]] = {
    "refused": Q(is_refused=True),
    # Less sure than what the preset calls answerable.
    "unsure": Q(verdict__in=("not_answerable", "partial")),
    "disliked": Q(feedback=-1),
    "degraded": ~Q(degraded=[]),
    "empty": Q(hit_count=0),
}


class SearchRecordQuerySet(models.QuerySet["SearchRecord"]):
    """Look-ups of records; whose they are comes first."""

    def visible_to(self, viewer: User) -> Self:
        """Return what a person may read: an admin all of it, anyone else what they asked for themselves."""
        return self if viewer.is_admin else self.filter(user=viewer, for_another=False)

    def own(self, person: User) -> Self:
        """Return what a person asked for, in their own name or as somebody else."""
        return self.filter(Q(user=person, for_another=False) | Q(actor=person))

    def mark_refused(self, record_id: uuid.UUID) -> None:
        """Note that the answer to a search was a refusal."""
        self.filter(pk=record_id).update(is_refused=True)


class SearchRecord(models.Model):
    """One search and its trace. Holds chunk ids and scores, never document text."""

    class Surface(models.TextChoices):
        """Where it was asked."""

        EXPLORER = "explorer"
        API = "api"
        CHAT = "chat"
        COMMAND = "command"
        AGENT = "agent"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    at = models.DateTimeField(auto_now_add=True)
    #: Documents whose change has a higher one in the outbox changed after the search; None for searches before it was
    #: kept.
    transaction_id = models.BigIntegerField(null=True, editable=False, db_default=CurrentTransaction())
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="searches", db_index=False
    )
    #: The admin who searched as `user`; empty when they are the same.
    actor = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="searches_as_others"
    )
    #: Whether it was an admin's search and not the user's own; stays when the admin's account goes.
    for_another = models.BooleanField(default=False, db_default=False)
    key = models.ForeignKey("corecube.ApiKey", null=True, on_delete=models.SET_NULL, related_name="searches")
    surface = models.CharField(max_length=10, choices=Surface, default=Surface.API, db_default=Surface.API)
    preset = models.CharField(max_length=40)
    #: SHA-256 of the preset's stages and config, so that a change of either shows.
    preset_version = models.CharField(max_length=64)
    #: Empty where CORECUBE_KEEP_QUERY_TEXT is off.
    query = models.TextField(blank=True)
    #: Hits wanted.
    top_k = models.PositiveSmallIntegerField(default=10, db_default=10)
    connection_ids = models.JSONField(default=list)
    milliseconds = models.FloatField()
    hit_count = models.PositiveIntegerField()
    degraded = models.JSONField(default=list)
    #: Whether it ran as its preset does, not with numbers, a draft or less time of the request's own: else what became
    #: of it tells nothing of how its compartments fare.
    is_ordinary = models.BooleanField(default=False, db_default=False)
    #: Whether it was answerable (`retrieval.engine.types.Verdict`), and how sure that is; empty when not judged.
    verdict = models.CharField(max_length=20, blank=True, default="", db_default="")
    confidence = models.FloatField(null=True)
    #: Whether an answer was asked for and refused.
    is_refused = models.BooleanField(default=False, db_default=False)
    #: What the asker thought of the answer: 1 or -1; empty when they did not say.
    feedback = models.SmallIntegerField(null=True)
    #: {"spans": [...], "hits": [...], "passages": [...]}, as `retrieval.search.tracing` writes it; what it ran with:
    #: {"version": 3, "is_draft": false, "overrides": {"blend.dense": 0.5}}; and what `retrieval.search.service` adds of
    #: the request, the numbers and the embedding index.
    trace = models.JSONField(default=dict)

    objects = SearchRecordQuerySet.as_manager()

    class Meta:
        ordering: ClassVar = ["-at", "-id"]
        indexes: ClassVar = [
            models.Index(F("at").desc(), F("id").desc(), name="search_by_time"),
            models.Index(F("user").asc(), F("at").desc(), F("id").desc(), name="search_by_user"),
            models.Index(fields=["milliseconds"], name="search_by_duration"),
            *(
                models.Index(F("at").desc(), F("id").desc(), condition=condition, name=f"search_{name}")
                for name, condition in FLAGS.items()
            ),
        ]

    def __str__(self) -> str:
        return str(self.id)
