"""The OpenAI-compatible routes: models and chat completions."""

import time

from django.http import HttpRequest, HttpResponseBase, JsonResponse, StreamingHttpResponse
from ninja import Router

from corecube.api import principal_of
from corecube.database import release_connection
from retrieval.answers.answering import answered, note, prepare
from retrieval.api import completion
from retrieval.api.chat_request import (
    ChatIn,
    ModelNotFoundError,
    history_of,
    search_request,
    standalone,
    usable_presets,
)
from retrieval.api.completion import STREAMED, CompletionOut, ModelOut, ModelsOut
from retrieval.api.schemas import REFUSALS
from retrieval.api.search import explanation_for
from retrieval.api.stream import event_stream
from retrieval.search.service import search

router = Router(tags=["openai"])


@router.get("/models", response={200: ModelsOut, **REFUSALS}, summary="List models")
def list_models(request: HttpRequest) -> completion.Json:
    """Return one model for each preset that the key may use."""
    return completion.models(usable_presets(principal_of(request)))


@router.get("/models/{name}", response={200: ModelOut, **REFUSALS}, summary="Read a model")
def read_model(request: HttpRequest, name: str) -> completion.Json:
    """Return one model."""
    if name not in usable_presets(principal_of(request)):
        raise ModelNotFoundError
    return completion.model(name)


@router.post(
    "/chat/completions", response={200: CompletionOut, **REFUSALS}, openapi_extra=STREAMED, summary="Answer a question"
)
def create_chat_completion(request: HttpRequest, body: ChatIn) -> HttpResponseBase:
    """Answer the last user message from the documents that the key's user may see, with [N] citations.

    The earlier messages are the conversation: a follow-up question is rewritten to a standalone query.

    `usage` is reported by the language model. If it reports none, `corecube.usage_is_estimated` is true and tokens are
    counted with the embedding model's tokenizer: question and context as the prompt, the answer as the completion.
    Without a language model the answer quotes the documents and says so.
    """
    principal = principal_of(request)
    history = history_of(body.messages)
    wanted = search_request(body, principal)
    outcome = search(standalone(wanted, history, principal), principal=principal)
    chat = completion.Chat(
        answering=prepare(outcome, principal, tuple(it for it in history if it.answer), question=wanted.text),
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
