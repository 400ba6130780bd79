"""Share a conversation inside the organization by a link; each reader sees what their own access allows."""

from dataclasses import dataclass, replace
from uuid import UUID, uuid4

from corecube import audit
from corecube.access import Principal
from corecube.database import first_or
from corecube.models import User
from retrieval.answers.conversations.reading import Exchange, Reference, ReferenceState, exchanges_of
from retrieval.errors import UnknownConversationError
from retrieval.models import Conversation


@dataclass(frozen=True, slots=True)
class SharedExchange:
    """A question of a shared conversation and its answer, as far as one reader may read them."""

    exchange: Exchange
    #: Number of cited passages that the reader cannot see, or whose documents no longer exist.
    left_out: int


def share(conversation: Conversation) -> None:
    """Share the questions asked so far, at the link that the conversation has or at a new one."""
    last = conversation.messages.order_by("-ordinal").values_list("ordinal", flat=True).first() or 0
    conversation.shared_as = conversation.shared_as or uuid4()
    conversation.shared_through = last
    _save(conversation, "conversation.shared")


def stop_sharing(conversation: Conversation) -> None:
    """Revoke the link. It stays revoked: sharing again makes another one."""
    conversation.shared_as, conversation.shared_through = None, 0
    _save(conversation, "conversation.share_revoked")


def _save(conversation: Conversation, action: str) -> None:
    # This does not change the time of its last use.
    stored = {"shared_as": conversation.shared_as, "shared_through": conversation.shared_through}
    Conversation.objects.filter(pk=conversation.pk).update(**stored)
    audit.record(action, actor=conversation.user, subject=str(conversation.pk))


def questions_not_shared(conversation: Conversation) -> int:
    """Return the number of questions that were asked after a conversation was shared."""
    later = conversation.messages.filter(ordinal__gt=conversation.shared_through, role="user")
    return later.count() if conversation.shared_as else 0


def shared_conversation(link: UUID, reader: User) -> Conversation:
    """Return the conversation of a link, and record that it was read; raise UnknownConversationError.

    The link of a user whose account is inactive leads nowhere, since they could not revoke it.
    """
    found = Conversation.objects.filter(shared_as=link, user__is_active=True).select_related("user")
    conversation = first_or(UnknownConversationError(), found)
    if conversation.user_id != reader.pk:
        audit.record("conversation.read", actor=reader, subject=str(conversation.pk))
    return conversation


def shared_exchanges(conversation: Conversation, reader: User) -> tuple[SharedExchange, ...]:
    """Return the shared questions of a conversation with the answers that a reader may read now."""
    exchanges = exchanges_of(conversation, Principal(reader))
    shared = (it for it in exchanges if it.answer.ordinal <= conversation.shared_through)
    return tuple(map(_for_reader, shared))


def _for_reader(exchange: Exchange) -> SharedExchange:
    """Return an exchange with no more than its reader could find alone.

    The reader must be able to open the document of every passage behind the answer, cited or not, and to read every
    text that the answer may repeat: otherwise it is withheld. Quotes repeat what they cite, a language model anything
    that it was given; a text that was changed may have been redacted. A refusal says what the sources of another user
    do not contain, so its text is never shown, nor is anything that was rated, searched for or noticed.
    """
    repeated = exchange.cited if exchange.answer.is_extractive else exchange.references
    can_read = all(it.state is ReferenceState.CURRENT for it in repeated)
    withheld = exchange.withheld or not can_read or not all(map(_can_open, exchange.references))
    hides_text = withheld or exchange.is_refused
    shown = replace(
        exchange,
        standalone="",
        withheld=withheld,
        text="" if hides_text else exchange.text,
        unsupported=() if hides_text else exchange.unsupported,
        notices=(),
        references=tuple(replace(it, rating=None, score=None) for it in exchange.references if _can_open(it)),
    )
    return SharedExchange(shown, sum(not _can_open(it) for it in exchange.cited))


def _can_open(reference: Reference) -> bool:
    """Return whether the passage's document exists in a connection that the reader can see."""
    return bool(reference.title)
