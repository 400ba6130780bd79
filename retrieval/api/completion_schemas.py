"""What the OpenAI-compatible API answers, for its description."""

from datetime import date
from typing import Any, Final, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

from retrieval.api.schemas import AnswerabilityOut, SearchOut, Source

#: A streamed answer's content type beside JSON.
STREAMED: Final[dict[str, Any]] = {
    "responses": {
        200: {
            "content": {
                "text/event-stream": {
                    "schema": {
                        "type": "string",
                        "description": "With `stream`: events whose data are chat.completion.chunk objects, then "
                        "`[DONE]`; a failure in between is an event with `error`.",
                    }
                }
            }
        }
    }
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
    """Where a citation stands in the text, in code points, end exclusive, and what it points to."""

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
    content: str
    refusal: str | None
    annotations: list[AnnotationOut]


class ChoiceOut(BaseModel):
    """The only choice."""

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
    """A passage that the answer was made from, and whether it is cited."""

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
    """CoreCube's own part of an answer."""

    model_config = ConfigDict(extra="allow")

    trace_id: UUID
    preset: str
    provider: str
    answerability: AnswerabilityOut | None
    degraded: list[str]
    usage_is_estimated: bool
    explain: SearchOut | None = None


class CompletionOut(BaseModel):
    """A whole answer."""

    id: str
    object: Literal["chat.completion"]
    created: int
    model: str
    choices: list[ChoiceOut]
    usage: UsageOut
    citations: list[str] = Field(description="Addresses of the passages; that of [N] has the index N-1.")
    search_results: list[SearchResultOut]
    corecube: ExtensionOut
