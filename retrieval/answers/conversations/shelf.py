"""A user's conversations: list, search, rename and delete, with retention."""

import logging
from datetime import timedelta
from typing import Final
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils import timezone

from corecube.database import first_or
from corecube.errors import InvalidRequestError
from corecube.models import User
from corecube.sanitise import storable
from retrieval.errors import UnknownConversationError
from retrieval.models import Conversation, Message

logger = logging.getLogger(__name__)

_MAX_TITLE_LENGTH: Final = 200
_BATCH: Final = 500


def conversations_of(user: User, text: str = "") -> QuerySet[Conversation]:
    """Return a user's conversations, the last used first; with a text only those with it in the title or a question.

    Answers are not searched: the user may no longer see what they quote. Conversations without questions are left out.
    """
    found = Conversation.objects.filter(user=user).exclude(title="").order_by("-updated_at", "pk")
    wanted = storable(text).strip()
    if not wanted:
        return found
    questions = Message.objects.filter(conversation=OuterRef("pk"), role=Message.Role.USER, text__icontains=wanted)
    return found.filter(Q(title__icontains=wanted) | Exists(questions))


def conversation_of(user: User, conversation_id: UUID) -> Conversation:
    """Return one of a user's conversations; raise UnknownConversationError."""
    return first_or(UnknownConversationError(), Conversation.objects.filter(user=user, pk=conversation_id))


def answer_of(user: User, conversation_id: UUID, message_id: UUID) -> Message:
    """Return an answer in one of a user's conversations; raise UnknownConversationError."""
    answers = Message.objects.filter(role=Message.Role.ASSISTANT).select_related("conversation")
    found = answers.filter(conversation__user=user, conversation=conversation_id, pk=message_id)
    return first_or(UnknownConversationError(), found)


def rename(conversation: Conversation, title: str) -> None:
    """Rename a conversation; raise InvalidRequestError for an empty or too long title."""
    wanted = " ".join(storable(title).split())
    if not wanted or len(wanted) > _MAX_TITLE_LENGTH:
        raise InvalidRequestError(f"A title has 1 to {_MAX_TITLE_LENGTH} characters.")
    # This does not change the time of its last use.
    Conversation.objects.filter(pk=conversation.pk).update(title=wanted)


def delete_all(user: User) -> int:
    """Delete all conversations of a user and return their number."""
    own = Conversation.objects.filter(user=user)
    count = own.count()
    own.delete()
    return count


def forget_old_conversations(batch: int = _BATCH) -> int:
    """Delete up to `batch` conversations unused for `CORECUBE_KEEP_CONVERSATIONS_DAYS`; return their number.

    Several processes may call this at once without waiting for each other.
    """
    if not settings.CORECUBE_KEEP_CONVERSATIONS_DAYS:
        return 0
    end = timezone.now() - timedelta(days=settings.CORECUBE_KEEP_CONVERSATIONS_DAYS)
    old = Conversation.objects.filter(updated_at__lt=end).order_by("updated_at", "pk")
    with transaction.atomic():
        ids = list(old.select_for_update(skip_locked=True).values_list("pk", flat=True)[:batch])
        if ids:
            Conversation.objects.filter(pk__in=ids).delete()
            logger.info("conversations.deleted count=%d", len(ids))
    return len(ids)
