"""Judgments of passages, and question sets for evaluation."""

import uuid
from typing import ClassVar

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.core.validators import MaxValueValidator
from django.db import models

from retrieval.models.document import Document


class QuestionSet(models.Model):
    """A named set of questions for evaluation."""

    slug = models.SlugField(unique=True)
    name = models.CharField(max_length=120)
    version = models.PositiveIntegerField(default=1, db_default=1)  #: Counts the changes of its cases.
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering: ClassVar = ["name"]

    def __str__(self) -> str:
        return self.name


class Case(models.Model):
    """A question of a question set."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    question_set = models.ForeignKey(QuestionSet, on_delete=models.CASCADE, related_name="cases")
    query = models.TextField()  #: Cut to the maximum query length.
    #: False for a question that the documents do not answer: a refusal is correct.
    is_answerable = models.BooleanField(default=True)
    #: Whose access the question is searched with; empty for that of the user who measures it.
    user = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.CASCADE, related_name="cases")
    tags = ArrayField(models.CharField(max_length=40), default=list, db_default=[])
    #: What its answer must contain, a list of requirements: each is a list of alternatives, one of which must appear.
    answers = models.JSONField(default=list, db_default=[])
    #: The search that it was saved from; empty if that was deleted or there was none.
    record = models.ForeignKey("retrieval.SearchRecord", null=True, blank=True, on_delete=models.SET_NULL)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering: ClassVar = ["query"]
        constraints: ClassVar = [models.UniqueConstraint(fields=["question_set", "query"], name="one_case_per_query")]

    def __str__(self) -> str:
        return self.query


class Judgment(models.Model):
    """A grade of how well a passage answers a question. It is deleted with its document."""

    class Source(models.TextChoices):
        """Who decided."""

        PERSON = "person"
        FINAL = "final"  #: A person, on a passage that others grade differently: it counts before all others.
        MODEL = "model"  #: A language model, called by a person: it counts only in runs that say so.

    #: Normalised by `retrieval.records.judgments`, so that case and white space do not matter; short enough for an
    #: index.
    query = models.TextField()
    # No database constraint: documents may be distributed over servers. Code that deletes one deletes its judgments.
    document = models.ForeignKey(Document, on_delete=models.CASCADE, db_constraint=False, related_name="judgments")
    #: Of the judged chunk's text: the judgment is valid as long as the document contains the text.
    content_hash = models.CharField(max_length=64)
    #: 0 not relevant, 1 related, 2 answers in part, 3 answers.
    grade = models.PositiveSmallIntegerField(validators=[MaxValueValidator(3)])
    source = models.CharField(max_length=10, choices=Source, default=Source.PERSON, db_default=Source.PERSON)
    explanation = models.CharField(max_length=500, blank=True, default="", db_default="")
    by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="judgments")
    at = models.DateTimeField(auto_now=True)

    class Meta:
        indexes: ClassVar = [models.Index(fields=["query"], name="judgment_query")]
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["query", "document", "content_hash", "by", "source"], name="one_judgment_per_person_and_passage"
            )
        ]

    def __str__(self) -> str:
        return f"{self.grade} for {self.document_id}"
