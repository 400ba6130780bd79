"""The record of every search: who asked, with what, and what each stage did."""

import uuid
from typing import ClassVar

from django.conf import settings
from django.db import models


class SearchRecord(models.Model):
    """One search and its trace. Holds chunk ids and scores, never document text."""

    class Surface(models.TextChoices):
        """Where it was asked."""

        EXPLORER = "explorer"
        API = "api"
        CHAT = "chat"
        COMMAND = "command"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    at = models.DateTimeField(auto_now_add=True, db_index=True)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="searches")
    #: The admin who searched as `user`; empty when they are the same.
    actor = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="searches_as_others"
    )
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
    #: Whether it was answerable, as `retrieval.types.Verdict` has it, and how sure that is; empty when not judged.
    verdict = models.CharField(max_length=20, blank=True, default="", db_default="")
    confidence = models.FloatField(null=True)
    #: Whether an answer was asked for and refused.
    is_refused = models.BooleanField(default=False, db_default=False)
    #: What the asker thought of the answer: 1 or -1; empty when they did not say.
    feedback = models.SmallIntegerField(null=True)
    #: {"spans": [...], "hits": [...], "passages": [...]}, as `retrieval.tracing` writes it, and what it ran with:
    #: {"version": 3, "is_draft": false, "overrides": {"blend.dense": 0.5}}.
    trace = models.JSONField(default=dict)

    class Meta:
        ordering: ClassVar = ["-at"]

    def __str__(self) -> str:
        return str(self.id)
