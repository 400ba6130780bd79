"""A chat completion as server-sent events."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Iterator
from typing import Final

from asgiref.sync import sync_to_async
from django.db import close_old_connections, transaction

from corecube.api import error_body
from corecube.errors import CoreCubeError
from retrieval.api.completion import Chat, Json, annotation, chunk, ending, note_refusal, usage_chunk
from retrieval.generate.draft import Draft
from retrieval.generate.types import Citation

logger = logging.getLogger(__name__)

KEEP_ALIVE_SECONDS: Final = 10.0
_KEEP_ALIVE: Final = b": keep-alive\n\n"
_DONE: Final = b"data: [DONE]\n\n"


async def event_stream(
    chat: Chat, *, wants_usage: bool, keep_alive_seconds: float = KEEP_ALIVE_SECONDS
) -> AsyncIterator[bytes]:
    """Yield the answer's events: role, content with annotations, the finish chunk, usage if wanted, `[DONE]`.

    Comments keep the connection alive while the provider is silent. A failure ends the stream with an error event.
    """
    try:
        async for data in _chunks(chat, wants_usage=wants_usage, keep_alive_seconds=keep_alive_seconds):
            yield _KEEP_ALIVE if data is None else _event(data)
        yield _DONE
    except Exception as error:
        # The status is sent already, so the error goes into the stream.
        logger.exception("chat.stream_failed id=%s", chat.outcome.id)
        yield _event(_failure(error))


async def _chunks(chat: Chat, *, wants_usage: bool, keep_alive_seconds: float) -> AsyncIterator[Json | None]:
    """Yield the chunks of an answer in order, and None for each silence."""
    draft = Draft(len(chat.outcome.passages))
    # Asked for usage, every chunk but the last carries an empty one.
    more: Json = {"usage": None} if wants_usage else {}
    yield {**chunk(chat, {"role": "assistant", "content": ""}), **more}
    async for piece in _pieces(chat, keep_alive_seconds):
        if piece is None:
            yield None
            continue
        for delta in _deltas(chat, *draft.add(piece)):
            yield {**chunk(chat, delta), **more}
    for delta in _deltas(chat, *draft.finish()):
        yield {**chunk(chat, delta), **more}
    await _note_refusal(chat, draft.text)
    yield {**chunk(chat, {}, finish_reason="stop"), **ending(chat, draft.text), **more}
    if wants_usage:
        yield await sync_to_async(usage_chunk, thread_sensitive=False)(chat, draft.text)


async def _pieces(chat: Chat, keep_alive_seconds: float) -> AsyncIterator[str | None]:
    """Yield the provider's pieces, which it makes in a thread, and None whenever it has been silent for a while."""
    pieces = chat.provider.complete(chat.task)
    while True:
        pending = asyncio.ensure_future(sync_to_async(_next, thread_sensitive=False)(pieces))
        while not (await asyncio.wait({pending}, timeout=keep_alive_seconds))[0]:
            yield None
        piece = pending.result()
        if piece is None:
            return
        yield piece


@sync_to_async
def _note_refusal(chat: Chat, text: str) -> None:
    """Note a refusal in the request's own thread; the stream that goes on keeps no database connection."""
    note_refusal(chat, text)
    if not transaction.get_connection().in_atomic_block:
        close_old_connections()


def _next(pieces: Iterator[str]) -> str | None:
    return next(pieces, None)


def _deltas(chat: Chat, text: str, citations: tuple[Citation, ...]) -> Iterator[Json]:
    if text:
        yield {"content": text}
    if citations:
        yield {"annotations": [annotation(chat, citation) for citation in citations]}


def _event(data: Json) -> bytes:
    return b"data: " + json.dumps(data, separators=(",", ":")).encode() + b"\n\n"


def _failure(error: Exception) -> Json:
    known = error if isinstance(error, CoreCubeError) else CoreCubeError()
    return error_body(str(known), status=known.status, code=known.code)
