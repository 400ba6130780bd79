"""What the OpenAI-compatible API reads. Parameters that are not named here are ignored."""

from typing import Any

from pydantic import ConfigDict, Field

from retrieval.api.preset_schemas import Overrides, TopK
from retrieval.api.request_body import RequestBody
from retrieval.api.schemas import ScopeIn


class ContentPart(RequestBody):
    """A part of a message's content; only text can be read."""

    type: str
    text: str | None = None


class MessageIn(RequestBody):
    """One message of the conversation."""

    role: str
    content: str | list[ContentPart] | None = None


class StreamOptions(RequestBody):
    """What a stream contains beside the answer."""

    include_usage: bool = False


class ExtensionIn(RequestBody):
    """CoreCube's own parameters."""

    model_config = ConfigDict(extra="forbid")

    scope: ScopeIn = Field(default_factory=ScopeIn)
    preset: str | None = Field(default=None, description="Overrides `model`.")
    top_k: TopK = 10
    explain: bool = Field(default=False, description="Adds to the answer what /api/v1/search would have answered.")
    overrides: Overrides = Field(default_factory=dict)
    filters: Any = Field(
        default=None,
        description="Conditions on documents' metadata, as Dify words them: `logical_operator` (and, or) and "
        "`conditions`, each with `name`, `comparison_operator` and `value`.",
    )


class ChatIn(RequestBody):
    """A question with the conversation before it."""

    model: str = Field(description="A preset's name, as GET /v1/models lists it.")
    messages: list[MessageIn]
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    n: int | None = None
    tools: Any = None
    functions: Any = None
    corecube: ExtensionIn = Field(default_factory=ExtensionIn)

    @property
    def wants_usage(self) -> bool:
        """Whether a stream ends with the token counts."""
        return self.stream_options is not None and self.stream_options.include_usage
