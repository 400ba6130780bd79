"""Sweeps: many configurations of a preset, measured on one half of a question set's queries."""

import uuid
from typing import ClassVar

from django.conf import settings
from django.db import models

from retrieval.models.evaluation_run import EvaluationRun
from retrieval.models.gate import Objective
from retrieval.models.judgment import QuestionSet


class Sweep(Objective):
    """A search for better numbers of a preset, by one worker, with one person's access."""

    Status = EvaluationRun.Status

    class Method(models.TextChoices):
        """GRID measures every combination; RANDOM draws some, and halves them while it measures more queries."""

        GRID = "grid"
        RANDOM = "random"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    question_set = models.ForeignKey(QuestionSet, on_delete=models.CASCADE, related_name="sweeps")
    preset = models.CharField(max_length=40)
    base = models.JSONField(default=dict)  #: The numbers of the live version at the start, as `EvaluationRun.values`.
    method = models.CharField(max_length=10, choices=Method)
    #: [{"name": "blend.dense", "values": [0.4, 0.6]}, ...] of a grid; "low" and "high" instead of values at random.
    ranges = models.JSONField()
    max_p95_ms = models.FloatField(null=True)  #: A configuration whose p95 exceeds it is not chosen.
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="sweeps")
    status = models.CharField(max_length=10, choices=Status, default=Status.QUEUED)
    created_at = models.DateTimeField(auto_now_add=True)
    started_at = models.DateTimeField(null=True)
    active_at = models.DateTimeField(null=True)  #: As `EvaluationRun.active_at`.
    finished_at = models.DateTimeField(null=True)
    message = models.TextField(blank=True, default="")  #: Why it failed.
    measured = models.PositiveIntegerField(default=0)  #: Searches that have a result, and all that it makes.
    total = models.PositiveIntegerField(default=0)
    connection_ids = models.JSONField(default=list)
    #: `retrieval.ranking.significance.Difference` of the best and the first configuration on the other queries.
    held_out = models.JSONField(null=True)

    class Meta:
        ordering: ClassVar = ["-created_at"]

    def __str__(self) -> str:
        return f"{self.preset} on {self.question_set}"

    @property
    def is_open(self) -> bool:
        """Whether it waits or runs."""
        return self.status in {self.Status.QUEUED, self.Status.RUNNING}


class Trial(models.Model):
    """One configuration of a sweep; number 0 is the one that it starts from."""

    sweep = models.ForeignKey(Sweep, on_delete=models.CASCADE, related_name="trials")
    number = models.PositiveIntegerField()
    values = models.JSONField()  #: Of the sweep's settings, by dotted name.
    run = models.OneToOneField(EvaluationRun, on_delete=models.CASCADE, related_name="trial")
    #: Of the queries of the tuning half so far.
    queries = models.PositiveIntegerField(default=0)
    mean = models.FloatField(null=True)
    p95_ms = models.FloatField(null=True)
    is_best = models.BooleanField(default=False)

    class Meta:
        ordering: ClassVar = ["number"]
        constraints: ClassVar = [models.UniqueConstraint(fields=["sweep", "number"], name="one_trial_of_a_number")]

    def __str__(self) -> str:
        return f"{self.sweep_id} {self.number}"
