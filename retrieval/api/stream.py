"""A chat completion as server-sent events."""

import json
import logging
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from typing import Final

from corecube.api import error_body
from corecube.errors import CoreCubeError
from retrieval.answers.answering import answer_events, note_later
from retrieval.answers.events import AnswerEvent, Cited, Done, Failed, Text
from retrieval.api.completion import Chat, Json, annotation, chunk, ending, finish_reason, usage_chunk
from retrieval.llm.streams import with_heartbeats

logger = logging.getLogger(__name__)

KEEP_ALIVE_SECONDS: Final = 10.0
_KEEP_ALIVE: Final = b": keep-alive\n\n"
_DONE: Final = b"data: [DONE]\n\n"


async def event_stream(
    chat: Chat, *, wants_usage: bool, keep_alive_seconds: float = KEEP_ALIVE_SECONDS
) -> AsyncGenerator[bytes, None]:
    """Yield the answer's events: role, content with annotations, the finish chunk, usage if requested, `[DONE]`.

    Comments keep the connection alive while the provider sends nothing. A failure ends the stream with an error event.
    Closing the stream stops the provider.
    """
    # With usage requested, all chunks but the last contain an empty one.
    more: Json = {"usage": None} if wants_usage else {}
    yield _event({**chunk(chat, {"role": "assistant", "content": ""}), **more})
    try:
        async with aclosing(with_heartbeats(answer_events(chat.answering), keep_alive_seconds)) as events:
            async for event in events:
                if isinstance(event, Failed):
                    yield _failure(event.error)
                    return
                for data in _chunks(chat, event):
                    yield _event({**data, **more})
                if event is None:
                    yield _KEEP_ALIVE
                if isinstance(event, Done):
                    await note_later(chat.answering, event)
                    if wants_usage:
                        yield _event(usage_chunk(chat, event))
                    yield _DONE
    except Exception as error:
        # The status is sent already, so the error goes into the stream.
        logger.exception("chat.stream_failed id=%s", chat.outcome.id)
        yield _failure(error)


def _chunks(chat: Chat, event: AnswerEvent | None) -> Iterator[Json]:
    """Yield the chunk that an event becomes, if any."""
    match event:
        case Text(text):
            yield chunk(chat, {"content": text})
        case Cited(citations):
            yield chunk(chat, {"annotations": [annotation(chat, citation) for citation in citations]})
        case Done():
            yield {**chunk(chat, {}, finish_reason=finish_reason(event)), **ending(chat, event)}
        case _:
            return


def _event(data: Json) -> bytes:
    return b"data: " + json.dumps(data, separators=(",", ":")).encode() + b"\n\n"


def _failure(error: Exception) -> bytes:
    known = error if isinstance(error, CoreCubeError) else CoreCubeError()
    return _event(error_body(str(known), status=known.status, code=known.code))
