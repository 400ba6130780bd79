"""The OpenAI-compatible routes: models and chat completions."""

import time

from django.http import HttpRequest, HttpResponseBase, JsonResponse, StreamingHttpResponse
from ninja import Router

from corecube.api import principal_of
from corecube.database import release_connection
from retrieval.answers.answering import answered, note, prepare
from retrieval.api import completion
from retrieval.api.chat_history import history_of, standing_alone
from retrieval.api.chat_request import search_request, usable_presets
from retrieval.api.chat_schemas import ChatIn
from retrieval.api.completion_schemas import STREAMED, CompletionOut, ModelOut, ModelsOut
from retrieval.api.errors import ModelNotFoundError
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
    "/chat/completions",
    response={200: CompletionOut, **REFUSALS},
    openapi_extra=STREAMED,
    summary="Answer a question",
)
def create_chat_completion(request: HttpRequest, body: ChatIn) -> HttpResponseBase:
    """Answer the last user message from the documents that the key's user may see, with [N] citations.

    The messages before it are the conversation: a follow-up question is made to stand alone before it is searched for.

    `usage` is what the language model says that it used. Where none says, it counts tokens by the embedding model's
    tokenizer, question and context as the prompt, the answer as the completion, and `corecube.usage_is_estimated` is
    true. Without a language model the answer quotes the sources and says so.
    """
    principal = principal_of(request)
    history = history_of(body.messages)
    asked = search_request(body, principal)
    outcome = search(standing_alone(asked, history, principal), principal=principal)
    chat = completion.Chat(
        answering=prepare(outcome, principal, tuple(it for it in history if it.answer), question=asked.text),
        absolute=request.build_absolute_uri,
        created=int(time.time()),
        explanation=explanation_for(principal, outcome) if body.corecube.explain else None,
    )
    # The search is done before the first byte is sent, so whatever is wrong with a request has a status of its own.
    if body.stream:
        return _streamed(chat, wants_usage=body.wants_usage)
    done = answered(chat.answering)
    note(chat.answering, done)
    return JsonResponse(completion.completion(chat, done))


def _streamed(chat: completion.Chat, *, wants_usage: bool) -> StreamingHttpResponse:
    # A slow stream must not keep a connection of the pool.
    release_connection()
    events = event_stream(chat, wants_usage=wants_usage)
    headers = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
    return StreamingHttpResponse(events, content_type="text/event-stream; charset=utf-8", headers=headers)
