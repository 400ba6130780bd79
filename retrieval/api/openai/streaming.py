"""Send an answer: whole, or as server-sent events in one of OpenAI's formats."""

import json
import logging
from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence
from contextlib import aclosing
from typing import Final, Protocol

from django.http import HttpResponseBase, JsonResponse, StreamingHttpResponse

from corecube.database import release_connection
from corecube.errors import CoreCubeError, error_body
from retrieval.answers.answering import answer_events, answered, note, note_later
from retrieval.answers.conversations.writing import fail, store, written
from retrieval.answers.events import AnswerEvent, Cited, Done, Failed, Text
from retrieval.api.openai.answer import Chat, Json, quoted
from retrieval.llm.streams import with_heartbeats
from retrieval.llm.types import Citation

logger = logging.getLogger(__name__)

KEEP_ALIVE_SECONDS: Final = 10.0
KEEP_ALIVE: Final = b": keep-alive\n\n"
DONE: Final = b"data: [DONE]\n\n"


class Format(Protocol):
    """How an answer is written, whole and as a stream of events."""

    def whole(self, done: Done) -> Json:
        """Return the complete answer."""
        ...

    def opening(self) -> Iterator[bytes]:
        """Yield the events before the first text."""
        ...

    def text(self, text: str, *, is_refusal: bool) -> Iterator[bytes]:
        """Yield the events of the next text, which is final."""
        ...

    def cited(self, citations: Sequence[Citation]) -> Iterator[bytes]:
        """Yield the events of passages that are cited for the first time."""
        ...

    def ending(self, done: Done) -> Iterator[bytes]:
        """Yield the events after the last text."""
        ...

    def failure(self, error: Json) -> Iterator[bytes]:
        """Yield the events of an error, the last ones."""
        ...


def event(data: Json, name: str = "") -> bytes:
    """Return a server-sent event, by its name if it has one."""
    head = f"event: {name}\n".encode() if name else b""
    return head + b"data: " + json.dumps(data, separators=(",", ":")).encode() + b"\n\n"


def response(chat: Chat, form: Format, *, is_streamed: bool) -> HttpResponseBase:
    """Return the answer as JSON or as a stream. The search is done, so an invalid request had its HTTP status."""
    if is_streamed:
        # A slow stream must not occupy a connection of the pool.
        release_connection()
        return stream_response(event_stream(chat, form))
    return JsonResponse(form.whole(quoted(chat, _answered(chat))))


def stream_response(events: AsyncGenerator[bytes, None] | Iterable[bytes]) -> StreamingHttpResponse:
    """Return events as a response that no proxy holds back."""
    headers = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
    return StreamingHttpResponse(events, content_type="text/event-stream; charset=utf-8", headers=headers)


def _answered(chat: Chat) -> Done:
    """Return the answer, with its stored message if it has one; raise CoreCubeError without one."""
    if chat.writing is None:
        done = answered(chat.answering)
        note(chat.answering, done)
        return done
    try:
        done = answered(chat.answering)
    except CoreCubeError as error:
        fail(chat.writing.message, error.code)
        raise
    chat.writing.take(done)
    store(chat.writing)
    return done


async def event_stream(
    chat: Chat, form: Format, *, keep_alive_seconds: float = KEEP_ALIVE_SECONDS
) -> AsyncGenerator[bytes, None]:
    """Yield the answer's events in a format.

    Comments keep the connection alive while the provider sends nothing. A failure ends the stream with an error event.
    Closing the stream stops the provider.
    """
    for line in form.opening():
        yield line
    try:
        async with aclosing(_events(chat, keep_alive_seconds)) as events:
            async for it in events:
                for line in _lines(chat, form, it):
                    yield line
                if isinstance(it, Failed):
                    return
                if isinstance(it, Done):
                    if chat.writing is None:
                        await note_later(chat.answering, it)
                    for line in form.ending(quoted(chat, it)):
                        yield line
    except Exception as error:
        # The status is sent already, so the error goes into the stream.
        logger.exception("chat.stream_failed id=%s", chat.outcome.id)
        for line in form.failure(_error(error)):
            yield line


def _events(chat: Chat, seconds: float) -> AsyncGenerator[AnswerEvent | None, None]:
    """Return the events of an answer, and None for every `seconds` without one; a stored answer is stored."""
    if chat.writing is not None:
        return written(chat.writing, poll_seconds=seconds)
    return with_heartbeats(answer_events(chat.answering), seconds)


def _lines(chat: Chat, form: Format, it: AnswerEvent | None) -> Iterator[bytes]:
    """Yield the lines of an event but for the ending; quotes that become JSON are held back until they are complete."""
    is_held_back = chat.answering.json_shape is not None
    match it:
        case None:
            yield KEEP_ALIVE
        case Failed(error, _):
            yield from form.failure(_error(error))
        case Text(text) if not is_held_back:
            yield from form.text(text, is_refusal=chat.is_refusal_only())
        case Cited(citations) if not is_held_back:
            yield from form.cited(citations)
        case Done() if is_held_back:
            done = quoted(chat, it)
            yield from form.text(done.text, is_refusal=chat.is_refusal_only(done))
            if done.citations:
                yield from form.cited(done.citations)


def _error(error: Exception) -> Json:
    known = error if isinstance(error, CoreCubeError) else CoreCubeError()
    return error_body(str(known), status=known.status, code=known.code, param=getattr(known, "param", None))
