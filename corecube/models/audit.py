"""The audit log: who did what, when."""

from typing import ClassVar

from django.conf import settings
from django.db import models


class AuditEvent(models.Model):
    """One deed worth remembering. Holds names and ids, never document or query text."""

    at = models.DateTimeField(auto_now_add=True, db_index=True)
    actor = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="audit_events"
    )
    #: Dotted verb: "search.run_as", "key.issued", "connection.sync_queued".
    action = models.CharField(max_length=60)
    subject = models.CharField(max_length=200, blank=True)
    details = models.JSONField(default=dict, blank=True)

    class Meta:
        ordering: ClassVar = ["-at", "-id"]

    def __str__(self) -> str:
        return f"{self.action} {self.subject}"
