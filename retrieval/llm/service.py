"""The service of a language model: its address, its request format, and the optional fields that it accepts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from retrieval.llm.types import Message


class Api(StrEnum):
    """The API of a service."""

    OPENAI = "openai"
    AZURE = "azure"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelService:
    """A model of a service, with its time limits."""

    name: str
    api: Api = Api.OPENAI
    base_url: str  #: Up to and including /v1; for Azure the resource's address.
    api_version: str = ""
    model: str  #: The service's name of the model; for Azure the deployment.
    api_key: str = field(default="", repr=False)
    timeout_seconds: float = 60.0  #: Total timeout of an answer, including retries.
    silence_seconds: float = 30.0  #: Token timeout: before the first token, and between two.
    max_retries: int = 2
    max_answer_tokens: int = 1024
    temperature: float = 0.1


@dataclass(frozen=True, slots=True)
class Dialect:
    """The optional request fields that a service accepts, learnt from its errors."""

    asks_usage: bool = True
    tokens_field: str = "max_tokens"
    sets_temperature: bool = True
    takes_format: bool = True

    def request(
        self, service: ModelService, messages: Sequence[Message], response_format: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """Return the body of a streamed chat completion; without the format if the service does not support it."""
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
        """Return a simpler dialect after a service's complaint; None if nothing is left to remove.

        The field that the complaint names is removed; if it names none, the format, if there was one, then the usage.
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
