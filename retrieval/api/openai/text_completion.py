"""Completions of OpenAI's earlier API: a prompt, and text without roles."""

from collections.abc import Iterator, Sequence
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from retrieval.answers.events import Done
from retrieval.api.openai.answer import Chat, Json, ending, finish_reason, head, usage
from retrieval.api.openai.chat_request import ChatIn, ExtensionIn, Stop, StreamOptions, UnsupportedParameterError
from retrieval.api.openai.completion import ExtensionOut, SearchResultOut, UsageOut
from retrieval.api.openai.streaming import DONE, event
from retrieval.api.schemas import RequestBody
from retrieval.llm.types import Citation


class TextCompletionIn(RequestBody):
    """A prompt; parameters that are not listed are ignored and named in a notice."""

    model_config = ConfigDict(extra="allow")

    model: str = Field(description="A preset's name, as GET /v1/models lists it.")
    prompt: str | list[str] = Field(description="The question; a list must contain one.")
    temperature: float | None = Field(default=None, ge=0, le=2)
    max_tokens: int | None = Field(default=None, ge=1)
    stop: Stop | list[Stop] | None = None
    seed: int | None = Field(default=None, ge=-(2**63), lt=2**63)
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    n: int | None = None
    corecube: ExtensionIn = Field(default_factory=ExtensionIn)

    @property
    def wants_usage(self) -> bool:
        """Whether a stream ends with the token counts."""
        return self.stream_options is not None and self.stream_options.include_usage

    def as_chat(self) -> ChatIn:
        """Return the prompt as a chat's only message; raise UnsupportedParameterError for several prompts."""
        prompts = [self.prompt] if isinstance(self.prompt, str) else self.prompt
        if len(prompts) != 1:
            raise UnsupportedParameterError("prompt", "Each request answers one prompt.")
        given = self.model_dump(exclude={"prompt"}, exclude_unset=True)
        return ChatIn.model_validate({**given, "messages": [{"role": "user", "content": prompts[0]}]})


class TextChoiceOut(BaseModel):
    """The choice; there is always one."""

    index: int
    text: str
    logprobs: None
    finish_reason: str


class TextCompletionOut(BaseModel):
    """A complete answer."""

    id: str
    object: Literal["text_completion"]
    created: int
    model: str
    choices: list[TextChoiceOut]
    usage: UsageOut
    citations: list[str] = Field(description="URLs of the passages; [N] has the index N-1.")
    search_results: list[SearchResultOut]
    corecube: ExtensionOut


class TextFormat:
    """Completions, whole and as chunks of text, of which the last has the finish reason and CoreCube's extension."""

    def __init__(self, chat: Chat, *, wants_usage: bool = False) -> None:
        self._chat, self._wants_usage = chat, wants_usage

    def whole(self, done: Done) -> Json:
        """Return the complete answer."""
        return {**self._chunk(done.text, finish_reason(done)), "usage": usage(done.usage), **ending(self._chat, done)}

    def opening(self) -> Iterator[bytes]:
        """Yield nothing."""
        yield from ()

    def text(self, text: str, *, is_refusal: bool) -> Iterator[bytes]:
        """Yield a chunk with text."""
        del is_refusal
        yield self._event(self._chunk(text))

    def cited(self, citations: Sequence[Citation]) -> Iterator[bytes]:
        """Yield nothing: this format has no annotations."""
        del citations
        yield from ()

    def ending(self, done: Done) -> Iterator[bytes]:
        """Yield the finish chunk, the usage if requested, and `[DONE]`."""
        yield self._event({**self._chunk("", finish_reason(done)), **ending(self._chat, done)})
        if self._wants_usage:
            yield event({**self._chunk(""), "choices": [], "usage": usage(done.usage)})
        yield DONE

    def failure(self, error: Json) -> Iterator[bytes]:
        """Yield the error."""
        yield event(error)

    def _event(self, data: Json) -> bytes:
        return event({**data, **({"usage": None} if self._wants_usage else {})})

    def _chunk(self, text: str, finish: str | None = None) -> Json:
        choice: dict[str, Any] = {"index": 0, "text": text, "logprobs": None, "finish_reason": finish}
        return {**head(self._chat, f"cmpl-{self._chat.outcome.id.hex}", "text_completion"), "choices": [choice]}
