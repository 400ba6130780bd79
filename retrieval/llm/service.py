"""A language model behind HTTP: where it is, how it is asked, and what it refuses to be asked with. No Django."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from retrieval.llm.types import Message


class Api(StrEnum):
    """How a service is spoken to."""

    OPENAI = "openai"
    AZURE = "azure"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelService:
    """Which model is asked, and how long it may take."""

    name: str
    api: Api = Api.OPENAI
    #: Up to and with /v1; for Azure the resource's address.
    base_url: str
    api_version: str = ""
    #: What the service calls it; for Azure the deployment.
    model: str
    api_key: str = field(default="", repr=False)
    #: For a whole answer, its retries included.
    timeout_seconds: float = 60.0
    #: How long it may be silent: before its first token, and between two.
    silence_seconds: float = 30.0
    max_retries: int = 2
    max_answer_tokens: int = 1024
    temperature: float = 0.1


@dataclass(frozen=True, slots=True)
class Dialect:
    """Which optional parts of a request the service takes; learnt from what it refuses."""

    asks_usage: bool = True
    tokens_field: str = "max_tokens"
    sets_temperature: bool = True
    takes_format: bool = True

    def request(
        self, service: ModelService, messages: Sequence[Message], response_format: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """Return the body of a streamed chat completion; the format is left out where the service takes none."""
        body: dict[str, Any] = {
            "model": service.model,
            "messages": [dict(message) for message in messages],
            "stream": True,
            self.tokens_field: service.max_answer_tokens,
        }
        if self.sets_temperature:
            body["temperature"] = service.temperature
        if self.asks_usage:
            body["stream_options"] = {"include_usage": True}
        if response_format is not None and self.takes_format:
            body["response_format"] = dict(response_format)
        return body

    def without(self, complaint: str, *, is_formatted: bool = False) -> "Dialect | None":
        """Return a dialect for a service that refused this one with a complaint; None where nothing is left to try.

        What the complaint names goes first; one that names nothing costs the format, if there was one, then the usage.
        """
        named = complaint.lower()
        has_format = is_formatted and self.takes_format
        if has_format and ("response_format" in named or "schema" in named):
            return replace(self, takes_format=False)
        if self.sets_temperature and "temperature" in named:
            return replace(self, sets_temperature=False)
        if self.tokens_field == "max_tokens" and "max_tokens" in named:
            return replace(self, tokens_field="max_completion_tokens")
        if has_format:
            return replace(self, takes_format=False)
        return replace(self, asks_usage=False) if self.asks_usage else None
