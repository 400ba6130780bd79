"""The OpenAI-compatible routes: models and chat completions."""

import json
import logging
import time
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from typing import Final

from django.http import HttpRequest, HttpResponseBase, JsonResponse, StreamingHttpResponse
from ninja import Router

from corecube.api import principal_of
from corecube.database import release_connection
from corecube.errors import CoreCubeError, error_body
from retrieval.answers.answering import answer_events, answered, note, note_later, prepare
from retrieval.answers.events import AnswerEvent, Cited, Done, Failed, Text
from retrieval.api.openai import chat_request, completion
from retrieval.api.openai.completion import (
    STREAMED,
    Chat,
    CompletionOut,
    Json,
    ModelOut,
    ModelsOut,
    annotation,
    chunk,
    ending,
    finish_reason,
    usage_chunk,
)
from retrieval.api.schemas import REFUSALS
from retrieval.api.search import explanation_for
from retrieval.llm.streams import with_heartbeats
from retrieval.search.service import search

logger = logging.getLogger(__name__)

KEEP_ALIVE_SECONDS: Final = 10.0
_KEEP_ALIVE: Final = b": keep-alive\n\n"
_DONE: Final = b"data: [DONE]\n\n"
router = Router(tags=["openai"])


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
            yield chunk(chat, {"refusal" if chat.is_refusal_only else "content": text})
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
    param = getattr(known, "param", None)
    return _event(error_body(str(known), status=known.status, code=known.code, param=param))


@router.get("/models", response={200: ModelsOut, **REFUSALS}, summary="List models")
def list_models(request: HttpRequest) -> completion.Json:
    """Return one model for each preset that the key may use."""
    return completion.models(chat_request.usable_presets(principal_of(request)))


@router.get("/models/{name}", response={200: ModelOut, **REFUSALS}, summary="Read a model")
def read_model(request: HttpRequest, name: str) -> completion.Json:
    """Return one model."""
    if name not in chat_request.usable_presets(principal_of(request)):
        raise chat_request.ModelNotFoundError
    return completion.model(name)


@router.post(
    "/chat/completions", response={200: CompletionOut, **REFUSALS}, openapi_extra=STREAMED, summary="Answer a question"
)
def create_chat_completion(request: HttpRequest, body: chat_request.ChatIn) -> HttpResponseBase:
    """Answer the last user message from the documents that the key's user may see, with [N] citations.

    The earlier messages are the conversation: a follow-up question is rewritten to a standalone query.

    `usage` is reported by the language model. If it reports none, `corecube.usage_is_estimated` is true and tokens are
    counted with the embedding model's tokenizer: question and context as the prompt, the answer as the completion.
    Without a language model the answer quotes the documents and says so.

    The language model gets the system prompt, `temperature`, `max_tokens`, `stop`, `seed` and `response_format`, within
    its limits. `corecube.notices` names what was changed or ignored. The system prompt follows the server's own rules
    and cannot replace them. An answer in JSON needs a language model that supports it, otherwise the request is refused
    with 400; a refusal is in `refusal` then, without content.
    """
    principal = principal_of(request)
    history = chat_request.history_of(body.messages)
    options = chat_request.options_of(body)
    wanted = chat_request.search_request(body, principal)
    outcome = search(chat_request.standalone(wanted, history, principal), principal=principal)
    chat = completion.Chat(
        answering=prepare(
            outcome, principal, tuple(it for it in history if it.answer), question=wanted.text, options=options
        ),
        ignored=chat_request.ignored_parameters(body),
        absolute=request.build_absolute_uri,
        created=int(time.time()),
        explanation=explanation_for(principal, outcome) if body.corecube.explain else None,
    )
    # The search is done before the first byte is sent, so that an invalid request gets its HTTP status.
    if body.stream:
        # A slow stream must not occupy a connection of the pool.
        release_connection()
        events = event_stream(chat, wants_usage=body.wants_usage)
        headers = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
        return StreamingHttpResponse(events, content_type="text/event-stream; charset=utf-8", headers=headers)
    done = answered(chat.answering)
    note(chat.answering, done)
    return JsonResponse(completion.completion(chat, done))
