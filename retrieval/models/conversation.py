"""Conversations of the chat page, and the memory of agents."""

import uuid
from typing import ClassVar

from django.conf import settings
from django.db import models

from corecube.models import Connection


class Conversation(models.Model):
    """Questions and answers of one user, private to that user unless shared by a link."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="conversations")
    title = models.CharField(max_length=200)
    preset = models.CharField(max_length=40)
    #: Slugs of the connections to include and to exclude: {"include": [], "exclude": []}.
    narrowing = models.JSONField(default=dict)
    #: The connection of the files that are attached to it; it goes with the conversation.
    files = models.OneToOneField(Connection, null=True, on_delete=models.SET_NULL, related_name="conversation")
    #: The secret part of the link for readers; empty if it is not shared. Messages up to this ordinal are shared.
    shared_as = models.UUIDField(null=True, unique=True)
    shared_through = models.PositiveIntegerField(default=0, db_default=0)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True, db_index=True)

    class Meta:
        ordering: ClassVar = ["-updated_at"]

    def __str__(self) -> str:
        return str(self.id)


class Message(models.Model):
    """A question or an answer."""

    class Role(models.TextChoices):
        USER = "user"
        ASSISTANT = "assistant"

    class State(models.TextChoices):
        """The state of an answer: WAITING for its reader, STOPPED by the user, FAILED because of the provider."""

        WAITING = "waiting"
        WRITING = "writing"
        DONE = "done"
        STOPPED = "stopped"
        FAILED = "failed"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    conversation = models.ForeignKey(Conversation, on_delete=models.CASCADE, related_name="messages")
    ordinal = models.PositiveIntegerField()  #: Position in the conversation, from 1.
    role = models.CharField(max_length=10, choices=Role)
    state = models.CharField(max_length=10, choices=State, default=State.DONE)
    text = models.TextField(blank=True)
    at = models.DateTimeField(auto_now_add=True)  #: Time of the question, or of the start of the answer.
    #: Of a question: the search text, if it differs from the question.
    standalone = models.TextField(blank=True, default="")
    #: Of an answer: its search, its provider, and whether it is a refusal.
    record = models.ForeignKey("retrieval.SearchRecord", null=True, on_delete=models.SET_NULL)
    provider = models.CharField(max_length=120, blank=True, default="")
    is_refused = models.BooleanField(default=False)
    #: Of an answer: whether it consists of quotes, so that it depends only on the passages that it cites.
    is_extractive = models.BooleanField(default=False)
    #: Of an answer, its passages by number: [{"number": 1, "document": id, "ordinal": 0, "content_hash": "...",
    #: "connection": 3, "score": 0.8, "cited": true}]; without their text.
    passages = models.JSONField(default=list)
    #: Of an answer, the ordered connections of everything that its provider was given: of its passages, and of the
    #: passages of earlier answers. None if unknown.
    connections = models.JSONField(null=True)
    #: Of an answer: sentences that their passages do not support, by position in code points:
    #: [{"start": 0, "end": 40, "reason": "number", "explanation": "..."}].
    unsupported = models.JSONField(default=list)
    #: Of an answer to a program that required JSON, the response format in OpenAI's terms: quotes are stored as text.
    response_format = models.JSONField(null=True)
    notices = models.JSONField(default=list)  #: Notices for the reader: [{"code": "fell_back", "text": "..."}].
    feedback = models.SmallIntegerField(null=True)  #: The user's rating: 1 or -1; of each citation by its number.
    citation_feedback = models.JSONField(default=dict)
    problem = models.CharField(max_length=60, blank=True, default="")

    class Meta:
        ordering: ClassVar = ["ordinal"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["conversation", "ordinal"], name="one_message_per_place")
        ]

    def __str__(self) -> str:
        return str(self.id)


class StartingPrompt(models.Model):
    """A question that admins offer on the empty chat page."""

    title = models.CharField(max_length=80)
    text = models.TextField()
    #: Slugs of the connections that answer it: only users who can see all of them are offered it; empty for everybody.
    #: Slugs, because a deleted connection must not make it visible to more people.
    sources = models.JSONField(default=list, blank=True)

    class Meta:
        ordering: ClassVar = ["pk"]

    def __str__(self) -> str:
        return self.title


class Memory(models.Model):
    """A user's memory. Access is controlled by its connection and the grants, as for documents."""

    user = models.OneToOneField(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="memory")
    connection = models.OneToOneField(Connection, on_delete=models.CASCADE, related_name="memory")

    class Meta:
        verbose_name_plural: ClassVar = "memories"

    def __str__(self) -> str:
        return self.connection.name
