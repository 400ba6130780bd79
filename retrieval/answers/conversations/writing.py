"""Write an answer of a conversation: search, stream, and store the result or the failure."""

import logging
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import asdict, dataclass, field
from time import monotonic
from typing import Any, Final

from asgiref.sync import async_to_sync
from django.db.models import QuerySet
from django.utils import timezone

from corecube.access import Principal, scope_for
from corecube.database import in_thread, release_connection
from corecube.errors import CoreCubeError
from retrieval.answers.answering import Answering, answer_events, note, origin, prepare
from retrieval.answers.conversations.asking import narrowing_of, question_of
from retrieval.answers.conversations.reading import earlier_questions, exchanges_of, turns_of
from retrieval.answers.events import AnswerEvent, Done, Failed, Text
from retrieval.answers.model_rewrite import follow_up
from retrieval.answers.rewrite import Rewriting
from retrieval.llm.citations import find_citations
from retrieval.llm.streams import with_heartbeats
from retrieval.llm.types import Notice
from retrieval.models import Message, SearchRecord
from retrieval.search.live import live_search
from retrieval.search.request import SearchRequest

logger = logging.getLogger(__name__)

POLL_SECONDS: Final = 0.5  #: Interval of the checks whether a user has stopped the answer.


@dataclass(slots=True)
class Writing:
    """An answer and its state while it is written."""

    message: Message
    answering: Answering
    rewriting: Rewriting
    text: str = ""
    notices: list[Notice] = field(default_factory=list)
    done: Done | None = None
    problem: str = ""
    state: Message.State = Message.State.STOPPED

    def take(self, event: AnswerEvent) -> None:
        """Add an event."""
        match event:
            case Text(text):
                self.text += text
            case Notice():
                self.notices.append(event)
            case Done():
                self.done, self.state = event, Message.State.DONE
            case Failed(error, so_far):
                self.done, self.state, self.problem = so_far, Message.State.FAILED, error.code

    def columns(self) -> dict[str, Any]:
        """Return the stored fields of the answer."""
        done, outcome = self.done, self.answering.outcome
        text, passages = done.text if done else self.text, () if outcome.asks_nothing else outcome.passages
        cited = {citation.number for citation in find_citations(text, len(passages))}
        connections = origin(self.answering, done)
        notices = list(done.notices if done else self.notices)
        judged = outcome.state.answerability
        if done and done.refused and judged and judged.explanation not in text:
            notices.append(Notice("refused", judged.explanation))
        return {
            "text": text,
            "provider": done.provider if done else "",
            "is_refused": bool(done and done.refused and not outcome.asks_nothing),
            "is_extractive": bool(done and done.extractive),
            "passages": [
                {
                    "number": it.number,
                    "document": str(it.hit.chunk_id.document_id),
                    "ordinal": it.hit.chunk_id.ordinal,
                    "content_hash": it.hit.chunk.content_hash,
                    "connection": it.hit.chunk.connection_id,
                    "score": it.score,
                    "cited": it.number in cited,
                }
                for it in passages
            ],
            "connections": None if connections is None else sorted(connections),
            "unsupported": [asdict(it) for it in done.unsupported] if done else [],
            "notices": [asdict(it) for it in notices],
            "problem": self.problem,
            "response_format": self.answering.options.response_format if self.answering.options.is_json else None,
        }


def claimed(answer: Message) -> bool:
    """Claim a waiting answer, so that no other process writes it; return whether it was still waiting."""
    now = timezone.now()
    waiting = Message.objects.filter(pk=answer.pk, state=Message.State.WAITING)
    if not waiting.update(state=Message.State.WRITING, at=now):
        return False
    answer.at, answer.state = now, Message.State.WRITING
    return True


def _claimed(answer: Message) -> QuerySet[Message]:
    """Return the answer while this process has the claim: empty if it was deleted or retried."""
    return Message.objects.filter(pk=answer.pk, at=answer.at).exclude(state=Message.State.WAITING)


def unclaim(answer: Message) -> None:
    """Let an answer wait again if `claimed` claimed it and nothing was written: its reader left during the search."""
    if answer.state == Message.State.WRITING:
        _claimed(answer).filter(state=Message.State.WRITING).update(state=Message.State.WAITING)


def begin(answer: Message) -> Writing:
    """Run the search of a claimed answer as its user; on an error the answer is stored as failed first."""
    try:
        return _begun(answer)
    except Exception as error:
        fail(answer, error.code if isinstance(error, CoreCubeError) else CoreCubeError.code)
        raise


def fail(answer: Message, problem: str) -> None:
    """Store an unfinished answer as failed."""
    _claimed(answer).filter(state=Message.State.WRITING).update(state=Message.State.FAILED, problem=problem)


def _begun(answer: Message) -> Writing:
    conversation, question = answer.conversation, question_of(answer)
    principal = Principal(conversation.user)
    before = [it for it in exchanges_of(conversation, principal) if it.answer.ordinal < answer.ordinal]
    turns = turns_of(before)
    rewriting = follow_up(principal, question.text, earlier_questions(before), turns)
    request = SearchRequest(
        text=rewriting.searched,
        original_text=rewriting.asked,
        preset=conversation.preset,
        narrowing=narrowing_of(conversation, scope_for(principal)),
        surface=SearchRecord.Surface.CHAT,
    )
    outcome = live_search(request, principal=principal)
    return opened(answer, prepare(outcome, principal, turns, question=question.text), rewriting)


def opened(answer: Message, answering: Answering, rewriting: Rewriting) -> Writing:
    """Store the search of a claimed answer, and return what is to be written."""
    standalone = rewriting.searched if rewriting.is_rewritten else ""
    Message.objects.filter(pk=question_of(answer).pk).update(standalone=standalone)
    _claimed(answer).update(record=answering.outcome.record_id)
    return Writing(answer, answering, rewriting)


async def written(writing: Writing, *, poll_seconds: float = POLL_SECONDS) -> AsyncGenerator[AnswerEvent | None, None]:
    """Yield the events of an answer, and None for every half second without one.

    The answer is always stored, before its last event: as done, as failed with its problem, or as stopped if the user
    leaves or stops it, which also stops the language model. Raises CoreCubeError if no provider can answer.
    """
    is_stored = False
    try:
        async with aclosing(with_heartbeats(answer_events(writing.answering), poll_seconds)) as events:
            checked = monotonic()
            async for event in events:
                if event is not None:
                    writing.take(event)
                if isinstance(event, Done | Failed):
                    await in_thread(store, writing)
                    is_stored = True
                yield event
                if monotonic() - checked >= poll_seconds and writing.done is None:
                    if await in_thread(_is_stopped, writing.message):
                        return
                    checked = monotonic()
    except Exception as error:
        writing.state = Message.State.FAILED
        writing.problem = error.code if isinstance(error, CoreCubeError) else CoreCubeError.code
        raise
    finally:
        if not is_stored:
            await in_thread(store, writing)


def finished(writing: Writing) -> None:
    """Write an answer without streaming; a failure is stored with it.

    Holds no database connection in the meantime.
    """

    async def read_all() -> None:
        async with aclosing(written(writing)) as events:
            async for _ in events:
                pass

    release_connection()
    try:
        async_to_sync(read_all)()
    except CoreCubeError:
        logger.exception("conversation.answer_failed message=%s", writing.message.pk)


def store(writing: Writing) -> None:
    """Store a finished answer; one that the user stopped stays stopped."""
    stored = _claimed(writing.message)
    stored.update(**writing.columns())
    stored.filter(state=Message.State.WRITING).update(state=writing.state)
    if writing.done is not None and writing.state is Message.State.DONE:
        note(writing.answering, writing.done)


def _is_stopped(answer: Message) -> bool:
    return not _claimed(answer).filter(state=Message.State.WRITING).exists()
