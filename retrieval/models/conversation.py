"""Conversations of the chat page: what was asked, what was answered, from which passages."""

import uuid
from typing import ClassVar

from django.conf import settings
from django.db import models


class Conversation(models.Model):
    """Questions and answers of one person; nobody else reads them."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="conversations")
    title = models.CharField(max_length=200)
    preset = models.CharField(max_length=40)
    #: Slugs of the connections to include and to leave out: {"include": [], "exclude": []}.
    narrowing = models.JSONField(default=dict)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True, db_index=True)

    class Meta:
        ordering: ClassVar = ["-updated_at"]

    def __str__(self) -> str:
        return str(self.id)


class Message(models.Model):
    """One question or one answer."""

    class Role(models.TextChoices):
        """Who wrote it."""

        USER = "user"
        ASSISTANT = "assistant"

    class State(models.TextChoices):
        """How far an answer is: WAITING for a reader to begin, STOPPED by its reader, FAILED by the provider."""

        WAITING = "waiting"
        WRITING = "writing"
        DONE = "done"
        STOPPED = "stopped"
        FAILED = "failed"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    conversation = models.ForeignKey(Conversation, on_delete=models.CASCADE, related_name="messages")
    #: Place in the conversation, from 1.
    ordinal = models.PositiveIntegerField()
    role = models.CharField(max_length=10, choices=Role)
    state = models.CharField(max_length=10, choices=State, default=State.DONE)
    text = models.TextField(blank=True)
    #: When it was asked, or begun to be written.
    at = models.DateTimeField(auto_now_add=True)
    #: Of a question: what was searched for, when that is more than the question says by itself.
    standalone = models.TextField(blank=True, default="")
    #: Of an answer: the search behind it, who wrote it, and whether it is a refusal.
    record = models.ForeignKey("retrieval.SearchRecord", null=True, on_delete=models.SET_NULL)
    provider = models.CharField(max_length=120, blank=True, default="")
    is_refused = models.BooleanField(default=False)
    #: Of an answer: whether it only quotes, so that it says nothing of passages that it does not cite.
    is_extractive = models.BooleanField(default=False)
    #: Of an answer, its passages by number: [{"number": 1, "document": id, "ordinal": 0, "content_hash": "...",
    #: "connection": 3, "score": 0.8, "cited": true}]; never their text.
    passages = models.JSONField(default=list)
    #: Of an answer, the connections of all that its writer was shown, in order: of its passages, and of what the
    #: earlier answers among it were made from. None where nobody knows.
    connections = models.JSONField(null=True)
    #: Of an answer: sentences that their passages do not support, by their place in code points:
    #: [{"start": 0, "end": 40, "reason": "number", "explanation": "..."}].
    unsupported = models.JSONField(default=list)
    #: What its reader should know of how it came to be: [{"code": "fell_back", "text": "..."}].
    notices = models.JSONField(default=list)
    #: What the reader thought of it: 1 or -1; of each citation by its number.
    feedback = models.SmallIntegerField(null=True)
    citation_feedback = models.JSONField(default=dict)
    #: Stable word for why it failed.
    problem = models.CharField(max_length=60, blank=True, default="")

    class Meta:
        ordering: ClassVar = ["ordinal"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["conversation", "ordinal"], name="one_message_per_place")
        ]

    def __str__(self) -> str:
        return str(self.id)
