"""The presets' configurations, version by version: one is live, one may be a draft, the rest are history."""

import hashlib
import json
from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import Q


class PresetVersion(models.Model):
    """One configuration of a preset. Only a draft changes; promoting it retires the one that was live."""

    class Status(models.TextChoices):
        """DRAFT can be edited and tried, LIVE serves, RETIRED can be promoted again."""

        DRAFT = "draft"
        LIVE = "live"
        RETIRED = "retired"

    preset = models.CharField(max_length=40)
    #: Counts from 1 within the preset.
    number = models.PositiveIntegerField()
    status = models.CharField(max_length=10, choices=Status.choices, default=Status.DRAFT)
    #: Values that differ from the defaults, by dotted name: {"blend.dense": 0.7}.
    values = models.JSONField(default=dict)
    note = models.CharField(max_length=200, blank=True, help_text="What it changes, and why.")
    created_at = models.DateTimeField(auto_now_add=True)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    promoted_at = models.DateTimeField(null=True)
    promoted_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")

    class Meta:
        ordering: ClassVar = ["preset", "-number"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["preset", "number"], name="one_preset_version_of_a_number"),
            models.UniqueConstraint(fields=["preset"], condition=Q(status="live"), name="one_live_preset_version"),
            models.UniqueConstraint(fields=["preset"], condition=Q(status="draft"), name="one_draft_preset_version"),
        ]

    def __str__(self) -> str:
        return f"{self.preset} v{self.number} ({self.status})"

    @property
    def fingerprint(self) -> str:
        """Names the version and its content: another one after each edit."""
        content = json.dumps([self.pk, self.values, self.note], sort_keys=True)
        return hashlib.sha256(content.encode()).hexdigest()[:16]
