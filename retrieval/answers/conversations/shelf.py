"""A person's conversations: listed, searched, renamed, deleted, and forgotten in time."""

import logging
from datetime import timedelta
from typing import Final
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils import timezone

from corecube.errors import InvalidRequestError
from corecube.models import User
from corecube.sanitise import storable
from retrieval.errors import UnknownConversationError
from retrieval.models import Conversation, Message

logger = logging.getLogger(__name__)

_MAX_TITLE_LENGTH: Final = 200
_BATCH: Final = 500


def conversations_of(user: User, text: str = "") -> QuerySet[Conversation]:
    """Return a person's conversations, the last used first, or those in whose title or questions a text stands.

    Answers are not searched: what they quote may not be visible to the person any more. Nor are conversations listed
    in which nothing was asked.
    """
    found = Conversation.objects.filter(user=user).exclude(title="").order_by("-updated_at", "pk")
    wanted = storable(text).strip()
    if not wanted:
        return found
    asked = Message.objects.filter(conversation=OuterRef("pk"), role=Message.Role.USER, text__icontains=wanted)
    return found.filter(Q(title__icontains=wanted) | Exists(asked))


def conversation_of(user: User, conversation_id: UUID) -> Conversation:
    """Return one of a person's conversations; raise UnknownConversationError for anybody else's."""
    found = Conversation.objects.filter(user=user, pk=conversation_id).first()
    if found is None:
        raise UnknownConversationError
    return found


def answer_of(user: User, conversation_id: UUID, message_id: UUID) -> Message:
    """Return an answer in one of a person's conversations; raise UnknownConversationError."""
    own = Message.objects.filter(conversation__user=user, conversation=conversation_id, pk=message_id)
    found = own.filter(role=Message.Role.ASSISTANT).select_related("conversation").first()
    if found is None:
        raise UnknownConversationError
    return found


def rename(conversation: Conversation, title: str) -> None:
    """Give a conversation another title; raise InvalidRequestError for an empty or overlong one."""
    wanted = " ".join(storable(title).split())
    if not wanted or len(wanted) > _MAX_TITLE_LENGTH:
        raise InvalidRequestError(f"A title has 1 to {_MAX_TITLE_LENGTH} characters.")
    # It does not become the last used by this.
    Conversation.objects.filter(pk=conversation.pk).update(title=wanted)


def delete_all(user: User) -> int:
    """Delete every conversation of a person and return how many there were."""
    own = Conversation.objects.filter(user=user)
    count = own.count()
    own.delete()
    return count


def forget_old_conversations(batch: int = _BATCH) -> int:
    """Delete conversations that nobody used for `CORECUBE_KEEP_CONVERSATIONS_DAYS`, at most `batch`; return how many.

    Several processes may call this at once: none waits for another.
    """
    if not settings.CORECUBE_KEEP_CONVERSATIONS_DAYS:
        return 0
    end = timezone.now() - timedelta(days=settings.CORECUBE_KEEP_CONVERSATIONS_DAYS)
    old = Conversation.objects.filter(updated_at__lt=end).order_by("updated_at", "pk")
    with transaction.atomic():
        ids = list(old.select_for_update(skip_locked=True).values_list("pk", flat=True)[:batch])
        if ids:
            Conversation.objects.filter(pk__in=ids).delete()
            logger.info("conversations.forgotten count=%d", len(ids))
    return len(ids)
