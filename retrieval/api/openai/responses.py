"""The routes of OpenAI's Responses API: create, read, delete; answers are messages of stored conversations."""

from dataclasses import replace
from typing import Any, Final, Literal, cast
from uuid import UUID

from django.http import HttpRequest, HttpResponseBase
from ninja import Router
from pydantic import BaseModel, ConfigDict, Field

from corecube.access import Principal
from corecube.api import principal_of
from corecube.errors import NotFoundError
from retrieval.answers.conversations.asking import ask, branch, question_of, start
from retrieval.answers.conversations.reading import Exchange, exchanges_of
from retrieval.answers.conversations.writing import claimed, opened
from retrieval.api.openai.answer import Chat, Json
from retrieval.api.openai.asking import asked
from retrieval.api.openai.chat_request import ChatIn, ContentPart, ExtensionIn
from retrieval.api.openai.completion import STREAMED, ExtensionOut, SearchResultOut
from retrieval.api.openai.response_format import ResponseFormat, stored_response
from retrieval.api.openai.streaming import response
from retrieval.api.schemas import REFUSALS, RequestBody, links
from retrieval.api.search import scope_request
from retrieval.models import Message

router = Router(tags=["openai"])
_CREATED: Final = {
    **STREAMED["responses"][200],
    **links(__name__, "response_id", "id", "read_response", "delete_response"),
}


class ResponseNotFoundError(NotFoundError, code="response_not_found"):
    """No such response of yours, or it depends on passages that you can no longer see."""

    param = "previous_response_id"


class ItemIn(RequestBody):
    """A message of the input; items of other types are ignored."""

    type: str = "message"
    role: str = ""
    content: str | list[ContentPart] | None = None


class TextIn(RequestBody):
    """The format of the text: `{"type": "text"}`, `json_object`, or `json_schema` with name and schema."""

    format: dict[str, Any] | None = None


class ResponseIn(RequestBody):
    """A question; parameters that are not listed are ignored and named in a notice."""

    model_config = ConfigDict(extra="allow")

    model: str = Field(description="A preset's name, as GET /v1/models lists it.")
    input: str | list[ItemIn] = Field(description="The question, or the conversation up to it.")
    instructions: str | None = Field(default=None, description="The system prompt of this response.")
    previous_response_id: str | None = Field(default=None, description="The response that this one follows.")
    store: bool | None = Field(default=None, description="False stores no conversation; default true.")
    stream: bool | None = None
    temperature: float | None = Field(default=None, ge=0, le=2)
    max_output_tokens: int | None = Field(default=None, ge=1)
    text: TextIn | None = None
    tool_choice: Any = Field(default=None, description="none or auto: no tool is called.")
    corecube: ExtensionIn = Field(default_factory=ExtensionIn)

    def as_chat(self) -> ChatIn:
        """Return the same question as a chat; raise UnsupportedParameterError as that does."""
        items = [ItemIn(role="user", content=self.input)] if isinstance(self.input, str) else self.input
        messages = [it.model_dump(exclude={"type"}) for it in items if it.type == "message"]
        if self.instructions:
            messages.insert(0, {"role": "system", "content": self.instructions})
        own = {"input", "instructions", "previous_response_id", "store", "max_output_tokens", "text"}
        given = {name: getattr(self, name) for name in self.model_fields_set - own}
        return ChatIn.model_validate(
            {
                **given,
                "messages": messages,
                "max_tokens": self.max_output_tokens,
                "response_format": _chat_format(self.text),
                "corecube": self.corecube,
            }
        )


def _chat_format(text: TextIn | None) -> Json | None:
    """Return the format in terms of chat completions, where name and schema are one level deeper."""
    if text is None or text.format is None:
        return None
    kind, rest = text.format.get("type", "text"), {k: v for k, v in text.format.items() if k != "type"}
    return {"type": kind, "json_schema": rest} if kind == "json_schema" else {"type": kind}


class ResponseOut(BaseModel):
    """An answer as OpenAI's response object."""

    model_config = ConfigDict(extra="allow")

    id: str
    object: Literal["response"]
    created_at: int
    status: str = Field(description="completed, incomplete, failed or in_progress.")
    model: str
    output: list[dict[str, Any]] = Field(description="One message; its text has the citations as annotations.")
    previous_response_id: str | None
    usage: dict[str, Any] | None
    citations: list[str] | None = Field(default=None, description="URLs of the passages; [N] has the index N-1.")
    search_results: list[SearchResultOut] | None = None
    corecube: ExtensionOut | None = Field(default=None, description="Only when the response is created.")


class DeletedOut(BaseModel):
    """A deleted response."""

    id: str
    object: Literal["response"]
    deleted: bool


@router.post(
    "/responses",
    response={200: ResponseOut, **REFUSALS},
    openapi_extra={"responses": {200: _CREATED}},
    summary="Create a response",
)
def create_response(request: HttpRequest, body: ResponseIn) -> HttpResponseBase:
    """Answer a question as /v1/chat/completions does, and store it: `previous_response_id` continues from there.

    The conversation is also on the chat page of the key's user. Messages of the input before the question are read for
    this response and not stored. No tools are called; `instructions` and the parameters of sampling reach the language
    model within its limits.
    """
    principal = principal_of(request)
    before = _exchanges_through(body.previous_response_id, principal)
    chat, rewriting = asked(request, body.as_chat(), before)
    previous = before[-1].answer if before else None
    if body.store is not False:
        conversation = (
            branch(previous)
            if previous is not None
            else start(principal.user, preset=chat.outcome.preset.name, narrowing=scope_request(body.corecube.scope))
        )
        answer = ask(conversation, chat.answering.question)
        claimed(answer)
        chat = replace(chat, writing=opened(answer, chat.answering, rewriting))
    form = ResponseFormat(chat, _echo(body, chat))
    return response(chat, form, is_streamed=bool(body.stream))


@router.get("/responses/{response_id}", response={200: ResponseOut, **REFUSALS}, summary="Read a response")
def read_response(request: HttpRequest, response_id: str) -> Json:
    """Return one of your stored responses, as far as you may read it now."""
    exchanges = _exchanges_through(response_id, principal_of(request))
    previous = _id(exchanges[-2].answer) if len(exchanges) > 1 else None
    return stored_response(exchanges[-1], _id(exchanges[-1].answer), previous, request.build_absolute_uri)


@router.delete("/responses/{response_id}", response={200: DeletedOut, **REFUSALS}, summary="Delete a response")
def delete_response(request: HttpRequest, response_id: str) -> DeletedOut:
    """Delete one of your stored responses with its question."""
    answer = _answer(response_id, principal_of(request))
    conversation = answer.conversation
    Message.objects.filter(pk__in=[answer.pk, question_of(answer).pk]).delete()
    if not conversation.messages.exists():
        conversation.delete()
    return DeletedOut(id=response_id, object="response", deleted=True)


def _echo(body: ResponseIn, chat: Chat) -> Json:
    """Return what a response repeats of its request, and its ids."""
    return {
        "id": _id(chat.writing.message) if chat.writing else f"resp_{chat.outcome.id.hex}",
        "previous_response_id": body.previous_response_id,
        "instructions": body.instructions,
        "max_output_tokens": body.max_output_tokens,
        "temperature": body.temperature,
        "store": body.store is not False,
        "text": {"format": (body.text.format if body.text else None) or {"type": "text"}},
        "metadata": cast("Json", (body.model_extra or {}).get("metadata") or {}),
    }


def _id(answer: Message) -> str:
    return f"resp_{answer.pk.hex}"


def _answer(response_id: str, principal: Principal) -> Message:
    try:
        pk = UUID(response_id.removeprefix("resp_"))
    except ValueError:
        raise ResponseNotFoundError from None
    answers = Message.objects.filter(role=Message.Role.ASSISTANT, conversation__user=principal.user, pk=pk)
    found = answers.select_related("conversation__user").first()
    if found is None:
        raise ResponseNotFoundError
    return found


def _exchanges_through(response_id: str | None, principal: Principal) -> tuple[Exchange, ...]:
    """Return a stored conversation up to a response, none without an id; raise ResponseNotFoundError."""
    if response_id is None:
        return ()
    answer = _answer(response_id, principal)
    exchanges = [it for it in exchanges_of(answer.conversation, principal) if it.answer.ordinal <= answer.ordinal]
    if not exchanges or exchanges[-1].answer.pk != answer.pk or exchanges[-1].withheld:
        raise ResponseNotFoundError
    return tuple(exchanges)
