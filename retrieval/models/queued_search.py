"""Searches that somebody asked for and comes back for."""

import uuid
from typing import ClassVar

from django.conf import settings
from django.db import models


class QueuedSearch(models.Model):
    """A search that a worker runs with what a language model makes of its question, and what came of it."""

    class Status(models.TextChoices):
        """Where it stands."""

        QUEUED = "queued"
        RUNNING = "running"
        DONE = "done"
        FAILED = "failed"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    at = models.DateTimeField(auto_now_add=True)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="queued_searches")
    #: The admin who asked as `user`; empty when they are the same.
    actor = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.CASCADE, related_name="queued_searches_as_others"
    )
    key = models.ForeignKey("corecube.ApiKey", null=True, on_delete=models.CASCADE, related_name="queued_searches")
    #: The question, until it was searched for; the record of the search keeps it, where it is to be kept.
    text = models.TextField(blank=True)
    #: What else was asked, as long: {"top_k", "include", "exclude", "overrides", "filter", "surface"}.
    request = models.JSONField(default=dict)
    status = models.CharField(max_length=10, choices=Status, default=Status.QUEUED)
    started_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)
    #: Other ways to put it, as the language model wrote them; none where the texts of queries are not kept.
    variants = models.JSONField(default=list)
    #: The record of the search once it was made.
    record_id = models.UUIDField(null=True)
    #: Why it failed: a stable word, and a sentence.
    code = models.CharField(max_length=40, blank=True, default="")
    message = models.TextField(blank=True, default="")

    class Meta:
        verbose_name_plural = "queued searches"
        ordering: ClassVar = ["-at"]
        indexes: ClassVar = [models.Index(fields=["status", "at"], name="queued_search_by_status")]

    def __str__(self) -> str:
        return f"{self.id} ({self.status})"
