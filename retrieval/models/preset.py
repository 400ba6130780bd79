"""Configurations: preset versions, calibrations and section sets."""

import hashlib
import json
from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now


class PresetVersion(models.Model):
    """A configuration of a preset. Only a draft can change; a promotion retires the previous live version."""

    class Status(models.TextChoices):
        """DRAFT can be edited and tested, LIVE is in use, RETIRED can be promoted again."""

        DRAFT = "draft"
        LIVE = "live"
        RETIRED = "retired"

    preset = models.CharField(max_length=40)
    number = models.PositiveIntegerField()  #: Counts from 1 within the preset.
    status = models.CharField(max_length=10, choices=Status.choices, default=Status.DRAFT)
    #: Values that differ from the defaults, by dotted name: {"blend.dense": 0.7}.
    values = models.JSONField(default=dict)
    note = models.CharField(max_length=200, blank=True, help_text="What it changes, and why.")
    created_at = models.DateTimeField(auto_now_add=True)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    changed_at = models.DateTimeField(auto_now=True, db_default=Now())  #: When its values were last saved.
    promoted_at = models.DateTimeField(null=True)
    #: The number that was live before its last promotion, to roll back to; None after a rollback, and before it.
    replaced = models.PositiveIntegerField(null=True)
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
        """Identifies the version and its content; changes with every edit."""
        content = json.dumps([self.pk, self.values, self.note], sort_keys=True)
        return hashlib.sha256(content.encode()).hexdigest()[:16]


class Calibration(models.Model):
    """A fit of the answerability model on judged questions. The active one is used by searches with its preset."""

    preset = models.CharField(max_length=40)
    encoder = models.CharField(max_length=320)  #: The embedding model of the fit, with its weights.
    #: {"score_type": ..., "with_sentences": fit, "without_sentences": fit}, a fit being
    #: {"intercept": ..., "weights": {signal: ...}, "means": {...}, "scales": {...}}.
    coefficients = models.JSONField()
    #: Cross-validated figures: {"auroc": ..., "ece": ..., "answerable": n, "not_answerable": n, "bins": [...]}.
    figures = models.JSONField()
    source = models.CharField(max_length=200)  #: The source of the judged questions, for display.
    is_active = models.BooleanField(default=True)
    created_at = models.DateTimeField(auto_now_add=True)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")

    class Meta:
        ordering: ClassVar = ["-created_at"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["preset"], condition=Q(is_active=True), name="one_active_calibration")
        ]

    def __str__(self) -> str:
        return f"{self.preset} on {self.source}"


class StoredSectionSet(models.Model):
    """A section set of the installation: a new one, or an edited one with the name of a shipped file."""

    name = models.CharField(max_length=60, unique=True)
    written = models.JSONField()  #: As returned by `SectionSet.to_mapping`.
    changed_at = models.DateTimeField(auto_now=True)
    changed_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")

    class Meta:
        ordering: ClassVar = ["name"]

    def __str__(self) -> str:
        return self.name
