"""The OpenAI-compatible routes of models and completions."""

from django.http import HttpRequest, HttpResponseBase, JsonResponse
from ninja import Router

from corecube.api import principal_of
from retrieval.api.openai import chat_request, completion, text_completion
from retrieval.api.openai.answer import Json
from retrieval.api.openai.asking import asked
from retrieval.api.openai.completion import STREAMED, ChatFormat, CompletionOut, ModelOut, ModelsOut
from retrieval.api.openai.streaming import response, stream_response
from retrieval.api.schemas import REFUSALS

router = Router(tags=["openai"])


@router.get("/models", response={200: ModelsOut, **REFUSALS}, summary="List models")
def list_models(request: HttpRequest) -> Json:
    """Return one model for each preset that the key may use."""
    return completion.models(chat_request.usable_presets(principal_of(request)))


@router.get("/models/{name}", response={200: ModelOut, **REFUSALS}, summary="Read a model")
def read_model(request: HttpRequest, name: str) -> Json:
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
    its limits. `corecube.notices` names what was changed or ignored, such as `tools`, of which none is called, and
    parts of a message that are not text. The system prompt follows the server's own rules and cannot replace them.

    An answer in JSON is written by the language model if it supports that. Without a language model the quotes become
    `{"answer": ..., "citations": [...]}`, or what a schema calls these; a schema that they do not fit is refused with
    400. A refusal is in `refusal` then, without content.

    A title or tags of a conversation, which chat clients request for themselves, are made from its first question:
    nothing is searched, and there is no `corecube`.
    """
    model = chat_request.preset_of(body, principal_of(request))
    reply = chat_request.task_reply(body)
    if reply is not None:
        if body.stream:
            return stream_response(completion.plain_events(model, reply))
        return JsonResponse(completion.plain(model, reply))
    chat, _ = asked(request, body)
    return response(chat, ChatFormat(chat, wants_usage=body.wants_usage), is_streamed=bool(body.stream))


@router.post(
    "/completions",
    response={200: text_completion.TextCompletionOut, **REFUSALS},
    openapi_extra=STREAMED,
    summary="Complete a prompt",
)
def create_completion(request: HttpRequest, body: text_completion.TextCompletionIn) -> HttpResponseBase:
    """Answer a prompt as a question, as /v1/chat/completions does, for clients of OpenAI's earlier API."""
    chat, _ = asked(request, body.as_chat())
    form = text_completion.TextFormat(chat, wants_usage=body.wants_usage)
    return response(chat, form, is_streamed=bool(body.stream))
