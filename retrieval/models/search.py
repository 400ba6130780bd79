"""The record of every search: who asked, with what, and what each stage did."""

import uuid
from typing import ClassVar

from django.conf import settings
from django.db import models


class SearchRecord(models.Model):
    """One search and its trace. Holds chunk ids and scores, never document text."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    at = models.DateTimeField(auto_now_add=True, db_index=True)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="searches")
    #: The admin who searched as `user`; empty when they are the same.
    actor = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="searches_as_others"
    )
    key = models.ForeignKey("corecube.ApiKey", null=True, on_delete=models.SET_NULL, related_name="searches")
    preset = models.CharField(max_length=40)
    #: SHA-256 of the preset's stages and config, so that a change of either shows.
    preset_version = models.CharField(max_length=64)
    #: Empty where CORECUBE_KEEP_QUERY_TEXT is off.
    query = models.TextField(blank=True)
    connection_ids = models.JSONField(default=list)
    milliseconds = models.FloatField()
    hit_count = models.PositiveIntegerField()
    degraded = models.JSONField(default=list)
    #: {"spans": [...], "hits": [...], "passages": [...]}, as `retrieval.tracing` writes it, and what it ran with:
    #: {"version": 3, "is_draft": false, "overrides": {"blend.dense": 0.5}}.
    trace = models.JSONField(default=dict)

    class Meta:
        ordering: ClassVar = ["-at"]

    def __str__(self) -> str:
        return str(self.id)
