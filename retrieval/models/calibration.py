"""What an installation's own judged questions taught the answerability model."""

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import Q


class Calibration(models.Model):
    """One fit of the answerability model on judged questions. The active one judges searches of its preset."""

    preset = models.CharField(max_length=40)
    #: The embedding model whose signals it was fitted on, with its weights.
    encoder = models.CharField(max_length=320)
    #: {"score_type": ..., "with_sentences": fit, "without_sentences": fit}, a fit being
    #: {"intercept": ..., "weights": {signal: ...}, "means": {...}, "scales": {...}}.
    coefficients = models.JSONField()
    #: Cross-validated figures: {"auroc": ..., "ece": ..., "answerable": n, "not_answerable": n, "bins": [...]}.
    figures = models.JSONField()
    #: Where the judged questions came from, for people.
    source = models.CharField(max_length=200)
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
