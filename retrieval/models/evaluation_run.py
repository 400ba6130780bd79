"""Runs of question sets: a configuration measured on every case, stored."""

import hashlib
import json
import uuid
from typing import ClassVar, Final

from django.conf import settings
from django.db import models

from retrieval.models.judgment import Case, QuestionSet

_HASH_LENGTH: Final = 12


class EvaluationRun(models.Model):
    """One configuration, measured on the cases of a question set."""

    class Status(models.TextChoices):
        """The first two are open."""

        QUEUED = "queued"
        RUNNING = "running"
        DONE = "done"
        FAILED = "failed"
        CANCELLED = "cancelled"

    class Trigger(models.TextChoices):
        """What queued it; empty for a person."""

        GATE = "gate"
        SYNC = "sync"
        NIGHT = "night"
        UPGRADE = "upgrade"

    class Counts(models.TextChoices):
        """Whose grades count: those of people, and for passages that nobody judged those of another source."""

        PEOPLE = "people", "People"
        MODEL = "model", "People and a language model"
        USE = "use", "People and use"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    question_set = models.ForeignKey(QuestionSet, on_delete=models.CASCADE, related_name="runs")
    #: The version of the set that it measures, once it has begun; None if the set changed meanwhile.
    set_version = models.PositiveIntegerField(null=True)
    name = models.CharField(max_length=120, blank=True)
    preset = models.CharField(max_length=40)
    is_draft = models.BooleanField(default=False)  #: Whether it runs with numbers of a draft that was not promoted.
    overrides = models.JSONField(default=dict)  #: Numbers for this run alone, by dotted name.
    #: The numbers that it measures, as differences from the shipped defaults, by dotted name. Fixed ones are given
    #: when it is queued; the live version's or the draft's are known once it has begun, and None before.
    values = models.JSONField(null=True)
    counts = models.CharField(max_length=10, choices=Counts, default=Counts.PEOPLE, db_default=Counts.PEOPLE)
    is_fixed = models.BooleanField(default=False, db_default=False)
    trigger = models.CharField(max_length=10, choices=Trigger, blank=True, default="", db_default="")
    has_answers = models.BooleanField(default=False, db_default=False)  #: Whether it answers each question too.
    #: What it searches and answers with, where that is not what the installation uses: another embedding index, no
    #: reranker, another language model ("extractive" for quotes alone).
    index_number = models.PositiveIntegerField(null=True)
    is_reranked = models.BooleanField(default=True, db_default=True)
    language_model = models.CharField(max_length=50, blank=True, default="", db_default="")
    #: Who started it. Cases without a user are searched with this user's access.
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="evaluation_runs")
    status = models.CharField(max_length=10, choices=Status, default=Status.QUEUED)
    created_at = models.DateTimeField(auto_now_add=True)
    started_at = models.DateTimeField(null=True)
    #: When its worker last said that it works; a run whose worker is silent is taken up by another one.
    active_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)
    message = models.TextField(blank=True, default="")  #: Why it failed.
    #: What it measured, known once it has begun: the preset's version, the fingerprint of its stages and numbers, the
    #: release, the embedding model, the number of its index, the reranker, and the ids of the connections in its scope.
    version = models.PositiveIntegerField(null=True)
    fingerprint = models.CharField(max_length=64, blank=True, default="")
    release = models.CharField(max_length=40, blank=True, default="")
    index = models.CharField(max_length=120, blank=True, default="")
    searched_index = models.PositiveIntegerField(null=True)
    reranker = models.CharField(max_length=200, blank=True, default="", db_default="")
    connection_ids = models.JSONField(default=list)

    class Meta:
        ordering: ClassVar = ["-created_at"]
        indexes: ClassVar = [models.Index(fields=["status", "created_at"], name="evaluation_run_by_status")]

    def __str__(self) -> str:
        return self.name or str(self.id)

    @property
    def is_open(self) -> bool:
        """Whether it waits or runs."""
        return self.status in {self.Status.QUEUED, self.Status.RUNNING}

    @property
    def configuration_hash(self) -> str:
        """The same for runs with the same stages, numbers, models and index; empty before it has begun."""
        parts = (self.fingerprint, self.index, self.searched_index, self.reranker, self.language_model)
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:_HASH_LENGTH] if self.fingerprint else ""


class RunCase(models.Model):
    """The result of one case in a run."""

    run = models.ForeignKey(EvaluationRun, on_delete=models.CASCADE, related_name="results")
    case = models.ForeignKey(Case, null=True, on_delete=models.SET_NULL, related_name="+")
    query = models.TextField()
    is_answerable = models.BooleanField()
    #: `retrieval.ranking.measures.Measures`; empty for a case that the documents do not answer.
    measures = models.JSONField(default=dict)
    #: What was measured: the ranking, best first, [document id, content hash], and all grades of the query,
    #: [document id, content hash, grade].
    ranking = models.JSONField(default=list)
    grades = models.JSONField(default=list)
    other_grades = models.PositiveIntegerField(default=0, db_default=0)  #: Of the grades, those not of people.
    verdict = models.CharField(max_length=20, blank=True, default="")
    confidence = models.FloatField(null=True)
    milliseconds = models.FloatField()
    tokens = models.PositiveIntegerField(default=0)  #: Of the packed context.
    degraded = models.JSONField(default=list)  #: Codes of what it went without.
    #: `retrieval.evaluation.case_answers.AnswerFigures`, without any text; empty if it was not answered.
    answer = models.JSONField(default=dict, db_default={})
    model_tokens = models.PositiveIntegerField(default=0, db_default=0)  #: Of language models.
    cost = models.DecimalField(max_digits=14, decimal_places=6, default=0, db_default=0)  #: Of these, at their prices.

    class Meta:
        ordering: ClassVar = ["query"]
        constraints: ClassVar = [models.UniqueConstraint(fields=["run", "query"], name="one_result_per_run_and_query")]

    def __str__(self) -> str:
        return self.query
