"""Experiments: two configurations whose rankings are interleaved in the answers to real questions."""

import uuid
from typing import ClassVar

from django.conf import settings
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Q


class Experiment(models.Model):
    """A comparison of two configurations by what people use; only one runs at a time."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    name = models.CharField(max_length=120)
    #: Each side's preset, the number of its version (0 for the shipped defaults), and the numbers of that version at
    #: the start, as differences from the shipped defaults.
    preset_a = models.CharField(max_length=40)
    number_a = models.PositiveIntegerField()
    values_a = models.JSONField(default=dict)
    preset_b = models.CharField(max_length=40)
    number_b = models.PositiveIntegerField()
    values_b = models.JSONField(default=dict)
    #: Percent of the questions that both answer.
    share = models.PositiveSmallIntegerField(validators=[MinValueValidator(1), MaxValueValidator(100)])
    includes_api = models.BooleanField(default=False)
    ends_at = models.DateTimeField(null=True)
    max_questions = models.PositiveIntegerField(null=True)
    questions = models.PositiveIntegerField(default=0)  #: Questions that both were searched for so far.
    is_running = models.BooleanField(default=True)
    started_at = models.DateTimeField(auto_now_add=True)
    started_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    ended_at = models.DateTimeField(null=True)

    class Meta:
        ordering: ClassVar = ["-started_at"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["is_running"], condition=Q(is_running=True), name="one_running_experiment")
        ]

    def __str__(self) -> str:
        return self.name
