"""What question sets guard: promotions by gates, and the live version by schedules."""

from typing import ClassVar

from django.conf import settings
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models

from retrieval.models.judgment import QuestionSet


class Objective(models.Model):
    """A measure at a cutoff, as `retrieval.ranking.measures.Objective`."""

    measure = models.CharField(max_length=20, default="ndcg")
    cutoff = models.PositiveSmallIntegerField(default=10, validators=[MinValueValidator(1), MaxValueValidator(20)])

    class Meta:
        abstract = True


class Gate(Objective):
    """A question set on which a promoted version may lose little."""

    question_set = models.ForeignKey(QuestionSet, on_delete=models.CASCADE, related_name="gates")
    preset = models.CharField(max_length=40, blank=True, default="")  #: Empty for every preset.
    max_loss = models.FloatField(default=0.01)  #: The mean of the measure may fall by at most this.

    class Meta:
        ordering: ClassVar = ["question_set__name", "preset"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["question_set", "preset"], name="one_gate_per_set_and_preset")
        ]

    def __str__(self) -> str:
        return f"{self.question_set} for {self.preset or 'every preset'}"


class Schedule(Objective):
    """When the live version of a preset is measured on a question set, and the mean below which that is an alarm."""

    question_set = models.ForeignKey(QuestionSet, on_delete=models.CASCADE, related_name="schedules")
    preset = models.CharField(max_length=40)
    #: Whose access it measures with.
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    after_syncs = models.BooleanField(default=False)
    nightly = models.BooleanField(default=False)
    after_upgrades = models.BooleanField(default=False)
    has_answers = models.BooleanField(default=False, db_default=False)  #: Whether its runs answer the questions too.
    min_mean = models.FloatField(null=True)  #: None for no alarm.
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering: ClassVar = ["question_set__name", "preset"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["question_set", "preset"], name="one_schedule_per_set_and_preset")
        ]

    def __str__(self) -> str:
        return f"{self.preset} on {self.question_set}"
