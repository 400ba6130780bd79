"""Starting conversations and asking in them."""

from typing import Final

from django.db import transaction

from corecube.access import Principal, ScopeRequest, scope_for
from corecube.models import User
from retrieval.engine.query import cut
from retrieval.models import Conversation, Message
from retrieval.presets.catalog import DEFAULT_PRESET, preset_named
from retrieval.search.request import checked_query

_MAX_TITLE_LENGTH: Final = 80
#: What an answer is that nobody waits for any more.
UNFINISHED: Final = (Message.State.WAITING, Message.State.WRITING)


def start(user: User, *, preset: str = DEFAULT_PRESET, narrowing: ScopeRequest | None = None) -> Conversation:
    """Begin a conversation with nothing in it.

    Raises UnknownPresetError, and UnknownConnectionError for a connection outside the user's scope.
    """
    kept = _kept(Principal(user), narrowing or ScopeRequest())
    return Conversation.objects.create(user=user, preset=_usable(preset), narrowing=kept)


def ask(conversation: Conversation, text: str) -> Message:
    """Add a question and the answer to be written to it, and return the answer, which waits for its reader.

    An answer that is still being written ends as stopped. Raises EmptyQueryError or QueryTooLongError.
    """
    question = checked_query(text)
    with transaction.atomic():
        # Two questions at once take their places one after the other.
        held = Conversation.objects.select_for_update().get(pk=conversation.pk)
        held.messages.filter(state__in=UNFINISHED).update(state=Message.State.STOPPED)
        last = held.messages.order_by("-ordinal").values_list("ordinal", flat=True).first() or 0
        if not held.title:
            held.title = title_of(question)
        held.save(update_fields=["title", "updated_at"])
        Message.objects.create(conversation=held, ordinal=last + 1, role=Message.Role.USER, text=question)
        return Message.objects.create(
            conversation=held, ordinal=last + 2, role=Message.Role.ASSISTANT, state=Message.State.WAITING
        )


def retry(answer: Message) -> Message:
    """Have a question answered anew: its answer waits again, with nothing in it. One that waits stays as it is."""
    if answer.state != Message.State.WAITING:
        answer = Message(
            pk=answer.pk,
            conversation=answer.conversation,
            ordinal=answer.ordinal,
            role=answer.role,
            state=Message.State.WAITING,
            at=answer.at,
        )
        answer.save(force_update=True)
    return answer


def change(conversation: Conversation, *, preset: str | None, narrowing: ScopeRequest | None) -> None:
    """Let a conversation go on with another preset or in other sources; None leaves either as it is.

    Raises what `start` raises.
    """
    if preset is not None:
        conversation.preset = _usable(preset)
    if narrowing is not None:
        conversation.narrowing = _kept(Principal(conversation.user), narrowing)
    Conversation.objects.filter(pk=conversation.pk).update(preset=conversation.preset, narrowing=conversation.narrowing)


def stop(answer: Message) -> bool:
    """End an answer that is being written, in whichever process; return whether there was anything to end.

    Whoever writes it looks here twice a second, stops the language model and keeps what it has.
    """
    unfinished = Message.objects.filter(pk=answer.pk, state__in=UNFINISHED)
    return bool(unfinished.update(state=Message.State.STOPPED))


def _kept(principal: Principal, narrowing: ScopeRequest) -> dict[str, list[str]]:
    """Return a narrowing as it is stored, once it is known that its connections are visible."""
    scope_for(principal, narrowing)
    return {"include": list(narrowing.include), "exclude": list(narrowing.exclude)}


def _usable(preset: str) -> str:
    return preset_named(preset).name


def question_of(answer: Message) -> Message:
    """Return the question that an answer answers."""
    return Message.objects.get(conversation_id=answer.conversation_id, ordinal=answer.ordinal - 1)


def narrowing_of(conversation: Conversation, visible: frozenset[str]) -> ScopeRequest:
    """Return how a conversation narrows its user's scope, to the connections that are visible now.

    One that was asked for and cannot be seen any more stays asked for, so that its search finds nothing in its place.
    """
    include = tuple(conversation.narrowing.get("include", ()))
    exclude = tuple(slug for slug in conversation.narrowing.get("exclude", ()) if slug in visible)
    return ScopeRequest(include, exclude)


def title_of(question: str) -> str:
    """Return a conversation's title: the beginning of its first question, in one line."""
    line = " ".join(question.split())
    beginning = cut(line, _MAX_TITLE_LENGTH)
    return beginning if beginning == line else f"{beginning}…"
