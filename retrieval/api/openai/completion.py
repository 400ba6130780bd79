"""Chat completions in OpenAI's format, with citations, search results and CoreCube's extension."""

import time
from collections.abc import Iterator, Sequence
from datetime import date
from typing import Any, Final, Literal
from uuid import UUID, uuid4

from pydantic import BaseModel, ConfigDict, Field

from retrieval.answers.events import Done, Outcome
from retrieval.api.openai.answer import Chat, Json, annotation, ending, finish_reason, head, usage
from retrieval.api.openai.streaming import DONE, event
from retrieval.api.schemas import AnswerabilityOut, SearchOut, Source
from retrieval.llm.types import Citation, TokenUsage

_EVENTS: Final = (
    "With `stream`: events with chat.completion.chunk objects, then `[DONE]`; a failure is an event with `error`."
)
#: OpenAPI description of the second content type, for streamed answers.
STREAMED: Final[dict[str, Any]] = {
    "responses": {200: {"content": {"text/event-stream": {"schema": {"type": "string", "description": _EVENTS}}}}}
}


class ModelOut(BaseModel):
    """A preset as a model."""

    id: str
    object: Literal["model"]
    created: int
    owned_by: str


class ModelsOut(BaseModel):
    """The presets that the key may use."""

    object: Literal["list"]
    data: list[ModelOut]


class UrlCitation(BaseModel):
    """A citation's position in the text, in code points, end exclusive, and its target."""

    start_index: int
    end_index: int
    title: str
    url: str


class AnnotationOut(BaseModel):
    """A citation."""

    type: Literal["url_citation"]
    url_citation: UrlCitation


class MessageOut(BaseModel):
    """The answer."""

    role: Literal["assistant"]
    content: str | None
    refusal: str | None = Field(description="The refusal text of a JSON answer without passages.")
    annotations: list[AnnotationOut]


class ChoiceOut(BaseModel):
    """The choice; there is always one."""

    index: int
    message: MessageOut
    logprobs: None
    finish_reason: str


class UsageOut(BaseModel):
    """Token counts."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int


class SearchResultOut(BaseModel):
    """A passage behind the answer, and whether it is cited."""

    number: int = Field(description="The N of [N].")
    title: str
    heading_path: list[str]
    url: str
    snippet: str
    score: float
    source: Source
    date: date
    cited: bool


class ExtensionOut(BaseModel):
    """CoreCube's extension of an answer."""

    model_config = ConfigDict(extra="allow")

    trace_id: UUID
    preset: str
    provider: str
    outcome: Outcome = Field(
        description="asserted: it answers; hedged: it may not answer; refused: it says that no document does."
    )
    answerability: AnswerabilityOut | None
    degraded: list[str]
    usage_is_estimated: bool
    explain: SearchOut | None = None


class CompletionOut(BaseModel):
    """A complete answer."""

    id: str
    object: Literal["chat.completion"]
    created: int
    model: str
    choices: list[ChoiceOut]
    usage: UsageOut
    citations: list[str] = Field(description="URLs of the passages; [N] has the index N-1.")
    search_results: list[SearchResultOut]
    corecube: ExtensionOut | None = Field(
        default=None, description="Absent for titles and tags, which chat clients request: nothing was searched."
    )


class ChatFormat:
    """Chat completions, whole and as chunks: role, content with annotations, the finish chunk, usage, `[DONE]`."""

    def __init__(self, chat: Chat, *, wants_usage: bool = False) -> None:
        self._chat, self._wants_usage = chat, wants_usage

    def whole(self, done: Done) -> Json:
        """Return the complete answer."""
        is_refusal = self._chat.is_refusal_only(done)
        message: Json = {
            "role": "assistant",
            "content": None if is_refusal else done.text,
            "refusal": done.text if is_refusal else None,
            "annotations": self._annotations(done.citations),
        }
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": finish_reason(done)}
        head = self._head("chat.completion")
        return {**head, "choices": [choice], "usage": usage(done.usage), **ending(self._chat, done)}

    def opening(self) -> Iterator[bytes]:
        """Yield the chunk with the role."""
        yield self._event({"role": "assistant", "content": ""})

    def text(self, text: str, *, is_refusal: bool) -> Iterator[bytes]:
        """Yield a chunk with text."""
        yield self._event({"refusal" if is_refusal else "content": text})

    def cited(self, citations: Sequence[Citation]) -> Iterator[bytes]:
        """Yield a chunk with annotations."""
        yield self._event({"annotations": self._annotations(citations)})

    def ending(self, done: Done) -> Iterator[bytes]:
        """Yield the finish chunk with CoreCube's extension, the usage if requested, and `[DONE]`."""
        yield self._event({}, finish_reason=finish_reason(done), **ending(self._chat, done))
        if self._wants_usage:
            yield event({**self._head("chat.completion.chunk"), "choices": [], "usage": usage(done.usage)})
        yield DONE

    def failure(self, error: Json) -> Iterator[bytes]:
        """Yield the error."""
        yield event(error)

    def _event(self, delta: Json, finish_reason: str | None = None, **more: Any) -> bytes:  # noqa: ANN401 -- JSON
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
        # With usage requested, all chunks but the last contain an empty one.
        empty = {"usage": None} if self._wants_usage else {}
        return event({**self._head("chat.completion.chunk"), "choices": [choice], **more, **empty})

    def _annotations(self, citations: Sequence[Citation]) -> list[Json]:
        return [{"type": "url_citation", "url_citation": annotation(self._chat, it)} for it in citations]

    def _head(self, kind: str) -> Json:
        return head(self._chat, f"chatcmpl-{self._chat.outcome.id.hex}", kind)


def plain(model: str, text: str) -> Json:
    """Return a text without a search as a complete answer."""
    message: Json = {"role": "assistant", "content": text, "refusal": None, "annotations": []}
    return {
        **_plain_head(model, "chat.completion"),
        "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}],
        "usage": usage(TokenUsage(0, 0)),
        "citations": [],
        "search_results": [],
    }


def plain_events(model: str, text: str) -> Iterator[bytes]:
    """Yield a text without a search as a stream."""
    start = _plain_head(model, "chat.completion.chunk")
    for delta, finish in (({"role": "assistant", "content": text}, None), ({}, "stop")):
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        yield event({**start, "choices": [choice]})
    yield DONE


def _plain_head(model: str, kind: str) -> Json:
    return {"id": f"chatcmpl-{uuid4().hex}", "object": kind, "created": int(time.time()), "model": model}


def models(names: Sequence[str]) -> Json:
    """Return the list of models."""
    return {"object": "list", "data": [model(name) for name in names]}


def model(name: str) -> Json:
    """Return a preset as a model."""
    return {"id": name, "object": "model", "created": 0, "owned_by": "corecube"}
