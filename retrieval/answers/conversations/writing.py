"""Writing an answer of a conversation: searched, streamed, and kept however it ends."""

import logging
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing
from dataclasses import asdict, dataclass, field
from time import monotonic
from typing import Any, Final

from asgiref.sync import async_to_sync, sync_to_async
from django.db.models import QuerySet
from django.utils import timezone

from corecube.access import Principal, scope_for
from corecube.database import release_connection
from corecube.errors import CoreCubeError
from retrieval.answers.answering import Answering, answer_events, note, origin, prepare
from retrieval.answers.conversations.asking import narrowing_of, question_of
from retrieval.answers.conversations.reading import reopened, said_before, turns_before
from retrieval.answers.events import AnswerEvent, Done, Failed, Text
from retrieval.answers.model_rewrite import follow_up
from retrieval.answers.rewrite import Rewriting
from retrieval.engine.types import Passage
from retrieval.llm.citations import find_citations
from retrieval.llm.heartbeats import with_heartbeats
from retrieval.llm.types import Notice
from retrieval.models import Message, SearchRecord
from retrieval.search.request import SearchRequest
from retrieval.search.service import search

logger = logging.getLogger(__name__)

#: How often an answer that is being written looks whether somebody has stopped it.
LOOK_SECONDS: Final = 0.5


@dataclass(slots=True)
class Writing:
    """An answer that is about to be written, and what there is of it."""

    message: Message
    answering: Answering
    rewriting: Rewriting
    text: str = ""
    notices: list[Notice] = field(default_factory=list)
    done: Done | None = None
    problem: str = ""
    #: How it ended; stopped until it ends otherwise.
    state: Message.State = Message.State.STOPPED

    def take(self, event: AnswerEvent) -> None:
        """Keep what an event says."""
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
        """Return what is stored of the answer."""
        done = self.done
        text, passages = done.text if done else self.text, self.answering.outcome.passages
        cited = {citation.number for citation in find_citations(text, len(passages))}
        connections = origin(self.answering, done)
        return {
            "text": text,
            "provider": done.provider if done else "",
            "is_refused": bool(done and done.refused),
            "is_extractive": bool(done and done.extractive),
            "passages": [_stored(it, cited=it.number in cited) for it in passages],
            "connections": None if connections is None else sorted(connections),
            "unsupported": [asdict(it) for it in done.unsupported] if done else [],
            "notices": [asdict(it) for it in (*(done.notices if done else self.notices), *self._reason())],
            "problem": self.problem,
        }

    def _reason(self) -> Iterator[Notice]:
        """Yield why the sources do not answer the question, where the answer is a refusal."""
        judged = self.answering.outcome.state.answerability
        if self.done and self.done.refused and judged and judged.explanation:
            yield Notice("refused", judged.explanation)


def _stored(passage: Passage, *, cited: bool) -> dict[str, Any]:
    """Return a passage as an answer keeps it: what it is, never its text."""
    facts = passage.hit.chunk
    return {
        "number": passage.number,
        "document": str(passage.hit.chunk_id.document_id),
        "ordinal": passage.hit.chunk_id.ordinal,
        "content_hash": facts.content_hash,
        "connection": facts.connection_id,
        "score": passage.score,
        "cited": cited,
    }


def claimed(answer: Message) -> bool:
    """Take an answer that waits, so that nobody else writes it; return whether it was still waiting."""
    now = timezone.now()
    waiting = Message.objects.filter(pk=answer.pk, state=Message.State.WAITING)
    if not waiting.update(state=Message.State.WRITING, at=now):
        return False
    answer.at, answer.state = now, Message.State.WRITING
    return True


def _held(answer: Message) -> QuerySet[Message]:
    """Return the answer as long as it is this writer's: nobody had it answered anew or deleted it."""
    return Message.objects.filter(pk=answer.pk, at=answer.at).exclude(state=Message.State.WAITING)


def begin(answer: Message) -> Writing:
    """Search for what a claimed answer is written from, as the user of its conversation.

    Raises CoreCubeError, and then the answer is kept as failed.
    """
    try:
        return _begun(answer)
    except CoreCubeError as error:
        fail(answer, error.code)
        raise


def fail(answer: Message, problem: str) -> None:
    """Keep that an answer could not be written."""
    _held(answer).update(state=Message.State.FAILED, problem=problem)


def _begun(answer: Message) -> Writing:
    conversation, question = answer.conversation, question_of(answer)
    principal = Principal(conversation.user)
    before = [it for it in reopened(conversation, conversation.user) if it.answer.ordinal < answer.ordinal]
    turns = turns_before(before)
    rewriting = follow_up(principal, question.text, said_before(before), turns)
    visible = frozenset(it.connection.slug for it in scope_for(principal).included)
    request = SearchRequest(
        text=rewriting.searched,
        original_text=rewriting.asked,
        preset=conversation.preset,
        narrowing=narrowing_of(conversation, visible),
        surface=SearchRecord.Surface.CHAT,
    )
    outcome = search(request, principal=principal)
    standalone = rewriting.searched if rewriting.is_rewritten else ""
    Message.objects.filter(pk=question.pk).update(standalone=standalone)
    _held(answer).update(record=outcome.record_id)
    return Writing(answer, prepare(outcome, principal, turns, question=question.text), rewriting)


async def written(writing: Writing, *, look_seconds: float = LOOK_SECONDS) -> AsyncGenerator[AnswerEvent | None, None]:
    """Yield what happens while an answer is written, and None for every half second in which nothing does.

    However it ends, what there is of it is kept: as done, as failed with its problem, or as stopped when its reader
    leaves or stops it. Either stops the language model. Raises CoreCubeError when nobody can answer.
    """
    try:
        async with aclosing(with_heartbeats(answer_events(writing.answering), look_seconds)) as events:
            looked = monotonic()
            async for event in events:
                if event is not None:
                    writing.take(event)
                yield event
                if monotonic() - looked >= look_seconds and writing.done is None:
                    if await _is_stopped(writing.message):
                        return
                    looked = monotonic()
    except Exception as error:
        writing.state = Message.State.FAILED
        writing.problem = error.code if isinstance(error, CoreCubeError) else CoreCubeError.code
        raise
    finally:
        await keep_later(writing)


def finished(writing: Writing) -> None:
    """Write an answer to its end, for a reader who does not stream; a failure is kept with it.

    Meanwhile no database connection is kept.
    """
    release_connection()
    try:
        async_to_sync(_read_through)(writing)
    except CoreCubeError:
        logger.exception("conversation.answer_failed message=%s", writing.message.pk)


async def _read_through(writing: Writing) -> None:
    async with aclosing(written(writing)) as events:
        async for _ in events:
            pass


def keep(writing: Writing) -> None:
    """Store an answer as it ended; one that its reader stopped stays stopped."""
    stored = _held(writing.message)
    stored.update(**writing.columns())
    stored.filter(state=Message.State.WRITING).update(state=writing.state)
    if writing.done is not None and writing.state is Message.State.DONE:
        note(writing.answering, writing.done)


async def keep_later(writing: Writing) -> None:
    """Do the same from a stream, in the request's own thread, which keeps no database connection afterwards."""
    await sync_to_async(_let_go_after)(keep, writing)


async def _is_stopped(answer: Message) -> bool:
    return bool(await sync_to_async(_let_go_after)(_stopped, answer))


def _stopped(answer: Message) -> bool:
    return not _held(answer).filter(state=Message.State.WRITING).exists()


def _let_go_after(work: Callable[[Any], Any], given: object) -> object:
    try:
        return work(given)
    finally:
        release_connection()
