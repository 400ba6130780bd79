"""Start conversations, add questions, and rate answers and their cited passages."""

from typing import Final
from uuid import UUID, uuid4

from django.conf import settings
from django.db import transaction

from corecube.access import Principal, ScopeRequest, scope_for
from corecube.errors import ConflictError, InvalidRequestError
from corecube.models import User
from corecube.scope import AccessScope
from retrieval.engine.query import cut
from retrieval.errors import UnknownPassageError
from retrieval.models import Conversation, Message, SearchRecord
from retrieval.presets.catalog import DEFAULT_PRESET, preset_named
from retrieval.records.judgments import THUMB_GRADES, PassageId, judge
from retrieval.records.use import note_rating
from retrieval.search.request import checked_query
from retrieval.text.small_talk import is_small_talk

_MAX_TITLE_LENGTH: Final = 80
UNFINISHED: Final = (Message.State.WAITING, Message.State.WRITING)


def start(user: User, *, preset: str = DEFAULT_PRESET, narrowing: ScopeRequest | None = None) -> Conversation:
    """Create an empty conversation; raise UnknownPresetError, UnknownConnectionError outside the user's scope."""
    stored = _stored(Principal(user), narrowing or ScopeRequest())
    return Conversation.objects.create(user=user, preset=preset_named(preset).name, narrowing=stored)


def ask(conversation: Conversation, text: str) -> Message:
    """Add a question and its answer, return that, stop an unfinished one; raise EmptyQueryError, QueryTooLongError."""
    question = checked_query(text)
    with transaction.atomic():
        # The lock gives concurrent questions different ordinals.
        locked = Conversation.objects.select_for_update().get(pk=conversation.pk)
        locked.messages.filter(state__in=UNFINISHED).update(state=Message.State.STOPPED)
        last = locked.messages.order_by("-ordinal").values_list("ordinal", flat=True).first() or 0
        if not locked.title or (_began_with_small_talk(locked) and not is_small_talk(question)):
            line = " ".join(question.split())
            start_of_line = cut(line, _MAX_TITLE_LENGTH)
            locked.title = start_of_line if start_of_line == line else f"{start_of_line}…"
        locked.save(update_fields=["title", "updated_at"])
        Message.objects.create(conversation=locked, ordinal=last + 1, role=Message.Role.USER, text=question)
        return Message.objects.create(
            conversation=locked, ordinal=last + 2, role=Message.Role.ASSISTANT, state=Message.State.WAITING
        )


def _began_with_small_talk(conversation: Conversation) -> bool:
    """Return whether the title is a greeting that the conversation began with, and not one that its user chose."""
    title = conversation.title
    return is_small_talk(title) and conversation.messages.filter(role=Message.Role.USER, text=title).exists()


def branch(answer: Message) -> Conversation:
    """Return the conversation of an answer, or a copy up to that answer if the conversation goes on after it."""
    conversation = answer.conversation
    if not conversation.messages.filter(ordinal__gt=answer.ordinal).exists():
        return conversation
    copy = Conversation.objects.create(
        user=conversation.user, title=conversation.title, preset=conversation.preset, narrowing=conversation.narrowing
    )
    messages = list(conversation.messages.filter(ordinal__lte=answer.ordinal))
    for message in messages:
        message.pk, message.conversation = uuid4(), copy
    Message.objects.bulk_create(messages)
    return copy


def retry(answer: Message) -> Message:
    """Reset an answer to waiting, without text; a waiting one is not changed."""
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
    """Change the preset or the sources of a conversation; None: no change. Raises as `start` does."""
    if preset is not None:
        conversation.preset = preset_named(preset).name
    if narrowing is not None:
        conversation.narrowing = _stored(Principal(conversation.user), narrowing)
    Conversation.objects.filter(pk=conversation.pk).update(preset=conversation.preset, narrowing=conversation.narrowing)


def stop(answer: Message) -> bool:
    """Stop an unfinished answer of any process; return whether there was one.

    The writing process checks this twice a second, then stops the language model and stores the text so far.
    """
    unfinished = Message.objects.filter(pk=answer.pk, state__in=UNFINISHED)
    return bool(unfinished.update(state=Message.State.STOPPED))


def _stored(principal: Principal, narrowing: ScopeRequest) -> dict[str, list[str]]:
    scope_for(principal, narrowing)
    return {"include": list(narrowing.include), "exclude": list(narrowing.exclude)}


def question_of(answer: Message) -> Message:
    """Return the question of an answer."""
    return Message.objects.get(conversation_id=answer.conversation_id, ordinal=answer.ordinal - 1)


def narrowing_of(conversation: Conversation, scope: AccessScope) -> ScopeRequest:
    """Return the narrowing of a conversation within a scope; its attached files are always searched too.

    Included connections stay even if they are no longer visible, so that the search does not use others instead.
    """
    visible = {it.connection.slug: it.connection for it in scope.included}
    include = tuple(conversation.narrowing.get("include", ()))
    exclude = tuple(slug for slug in conversation.narrowing.get("exclude", ()) if slug in visible)
    files = tuple(slug for slug, it in visible.items() if it.id == conversation.files_id)
    others = tuple(slug for slug, it in visible.items() if not it.is_attached)
    return ScopeRequest((*(include or others), *files) if files else include, exclude)


def rate_answer(answer: Message, rating: int | None) -> None:
    """Store a rating of an answer, 1 or -1, also with its search for the query log; None deletes it.

    Raises InvalidRequestError for another rating, and ConflictError for an unfinished answer.
    """
    _check(answer, rating)
    Message.objects.filter(pk=answer.pk).update(feedback=rating)
    if answer.record_id is not None:
        SearchRecord.objects.filter(pk=answer.record_id).update(feedback=rating)


def rate_citation(answer: Message, number: int, rating: int | None) -> None:
    """Store a rating of a passage, which also counts as a judgment and as use; None deletes all of them.

    There is neither if the installation does not store query texts. Raises InvalidRequestError, ConflictError, and
    UnknownPassageError for a passage that no longer exists or that the user can no longer see.
    """
    _check(answer, rating)
    passage = next((it for it in answer.passages if it["number"] == number), None)
    if passage is None:
        raise UnknownPassageError
    user = answer.conversation.user
    scope = scope_for(Principal(user))
    if not scope.allows(passage["connection"]):
        raise UnknownPassageError
    if settings.CORECUBE_KEEP_QUERY_TEXT:
        question = question_of(answer)
        judged = PassageId(UUID(passage["document"]), passage["content_hash"])
        grade = None if rating is None else THUMB_GRADES[rating]
        judge(question.standalone or question.text, judged, grade=grade, by=user, scope=scope)
        if answer.record is not None:
            note_rating(answer.record, number, rating)
    with transaction.atomic():
        locked = Message.objects.select_for_update().get(pk=answer.pk)
        others = {key: value for key, value in locked.citation_feedback.items() if key != str(number)}
        locked.citation_feedback = others if rating is None else {**others, str(number): rating}
        locked.save(update_fields=["citation_feedback"])


def _check(answer: Message, rating: int | None) -> None:
    if rating not in {None, *THUMB_GRADES}:
        raise InvalidRequestError("A rating must be 1 or -1.")
    if answer.state in UNFINISHED:
        raise ConflictError("The answer is not finished.")
